#include "service/lane/lane_methods.h"

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "pando/v1/data_path.pb.h"
#include "service/calls/request_parts.h"
#include "service/calls/served_call.h"
#include "service/calls/status_message.h"

namespace pando {
namespace {

// If a request takes more memory than this, its memory is freed after the call
// instead of reused. The scoring of a long queue takes some megabytes, and is
// done often, so the limit is above that.
constexpr size_t kKeptMessageBytes = size_t{4} << 20;

void AnswerWith(uint32_t code, const google::protobuf::MessageLite& message,
                uint32_t slot, ServedLane& lane) {
  lane.Answer(slot, code, message.ByteSizeLong(), [&](std::byte* out) {
    message.SerializeWithCachedSizesToArray(reinterpret_cast<uint8_t*>(out));
  });
}

void AnswerWith(const absl::Status& error, uint32_t slot, ServedLane& lane) {
  AnswerWith(static_cast<uint32_t>(error.code()), ToStatusMessage(error), slot,
             lane);
}

// A place that serves the calls of one method, one after the other, like
// UnaryCall. A call that waits keeps its place until it is answered.
template <typename Request, typename Response>
class TypedLaneCall final : public ServedCall<Request, Response>,
                            public LaneCall {
 public:
  using Base = ServedCall<Request, Response>;

  TypedLaneCall(CallPolicy* policy, MethodPointer<Request, Response> method,
                MethodMetrics metrics)
      : Base(policy, std::move(method), metrics, &request_, &response_) {}

  Caller caller() const override { return lane_->caller(); }

  absl::Status CheckParts(std::string_view request) override {
    google::protobuf::io::ArrayInputStream stream(
        request.data(), static_cast<int>(request.size()));
    return CheckRequestParts(stream, *Request::descriptor());
  }
  absl::Status ParseMore(std::string_view fields) override {
    parsed_bytes_ += fields.size();
    if (request_.MergeFromString({fields.data(), fields.size()})) {
      return absl::OkStatus();
    }
    return absl::InternalError("the request cannot be parsed");
  }
  bool Begin(LaneConnection& lane, uint32_t slot,
             const absl::Status& parsed) override {
    lane_ = &lane;
    slot_ = slot;
    parsed_ = parsed;
    Base::Begin();
    return this->waits();
  }
  void TakeStep() override { this->Resume(); }
  void End() override { this->Cancel(); }
  bool OnStep() override { return lane_->KeepStep(this); }

  // Makes the place ready for the next call.
  void Empty() {
    request_.Clear();
    response_.Clear();
    // The size of the message is summed up field by field, which is too slow
    // after each call.
    if (parsed_bytes_ < kKeptMessageBytes) return;
    parsed_bytes_ = 0;
    if (request_.SpaceUsedLong() > kKeptMessageBytes) request_ = Request();
  }

 private:
  // Returns the result of parsing. On a lane a request is parsed before the
  // caller is checked; that is safe, because it is never larger than the lane.
  absl::Status Parse() override { return parsed_; }

  void Send(const absl::Status& status) override {
    if (status.ok()) {
      AnswerWith(0, response_, slot_, lane_->lane());
    } else {
      AnswerWith(status, slot_, lane_->lane());
    }
    if (this->waits()) lane_->RemoveWaiting(this);  // deletes this
  }

  absl::Status parsed_;
  size_t parsed_bytes_ = 0;  // since the message's size was checked
  Request request_;
  Response response_;
  LaneConnection* lane_ = nullptr;
  uint32_t slot_ = 0;
};

template <typename Request, typename Response>
class OfferedMethod final : public LaneMethod {
 public:
  OfferedMethod(CallPolicy* policy, MethodPointer<Request, Response> method,
                MethodMetrics metrics)
      : policy_(policy), method_(std::move(method)), metrics_(metrics) {}

  void Serve(LaneConnection& lane, const ServedLane::Taken& call) override {
    if (place_ == nullptr) place_ = NewTypedCall();
    const absl::Status parsed = Parse(call.request);
    FairMutexLock turn(&policy_->turn().mutex());
    if (place_->Begin(lane, call.slot, parsed)) {
      lane.AddWaiting(std::move(place_));
    } else {
      place_->Empty();
    }
  }

  std::unique_ptr<LaneCall> NewCall() const override { return NewTypedCall(); }

 private:
  using Typed = TypedLaneCall<Request, Response>;

  std::unique_ptr<Typed> NewTypedCall() const {
    return std::make_unique<Typed>(policy_, method_, metrics_);
  }
  absl::Status Parse(const std::string& request) {
    RETURN_IF_ERROR(place_->CheckParts(request));
    return place_->ParseMore(request);
  }

  CallPolicy* const policy_;
  const MethodPointer<Request, Response> method_;
  const MethodMetrics metrics_;
  std::unique_ptr<Typed> place_;
};

}  // namespace

LaneMethods::LaneMethods(CallPolicy* policy, const DataPath& data_path,
                         RpcMetrics& metrics)
    : policy_(policy) {
  data_path.ForEach([&]<typename Request, typename Response>(
                        lane::Method number,
                        MethodPointer<Request, Response> method) {
    methods_[static_cast<uint32_t>(number)] =
        std::make_unique<OfferedMethod<Request, Response>>(
            policy, method,
            metrics.ForMethod(method->service, method->name, "unary", "lane"));
  });
}

void LaneMethods::Serve(LaneConnection& lane, const ServedLane::Taken& call) {
  const auto method = methods_.find(call.method);
  if (method != methods_.end() && call.request.size() < call.request_bytes) {
    FairMutexLock turn(&policy_->turn().mutex());
    AnswerWith(absl::ResourceExhaustedError(
                   absl::StrCat("the request has ", call.request_bytes,
                                " bytes, more than max-tokens-per-request "
                                "tokens and all else need")),
               call.slot, lane.lane());
    return;
  }
  if (method != methods_.end()) {
    method->second->Serve(lane, call);
    return;
  }
  FairMutexLock turn(&policy_->turn().mutex());
  AnswerWith(absl::UnimplementedError(absl::StrCat(
                 "method ", call.method, " is not offered on a lane")),
             call.slot, lane.lane());
}

}  // namespace pando
