#include "clients/cpp/src/client_lane.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "clients/cpp/src/status.h"

namespace pando {
inline namespace client {
namespace {

using Outcome = lane::Call::Outcome;

// Lanes wait by a clock that only goes forward.
lane::Lane::Clock::time_point OnLaneClock(absl::Time deadline) {
  return lane::Lane::Clock::now() +
         absl::ToChronoNanoseconds(deadline - absl::Now());
}

absl::Status ReadAnswer(const lane::Call& call,
                        google::protobuf::MessageLite* response) {
  const std::span<const std::byte> answer = call.answer();
  if (call.code() != 0) return FromStatusMessage(answer);
  if (!response->ParseFromArray(answer.data(),
                                static_cast<int>(answer.size()))) {
    return absl::InternalError("the answer is not such a message");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ClientLane::Open(ReceivedMemory memory, uint32_t page_tokens) {
  page_tokens_ = page_tokens;
  // The descriptors are those of the lane, of its doorbell and of the gauges.
  if (memory.descriptors.size() != 3) {
    return absl::InternalError(absl::StrCat(
        "a lane has 3 descriptors; ", memory.descriptors.size(), " came"));
  }
  std::string error;
  auto mapped = lane::Lane::Map(memory.descriptors[0],
                                std::move(memory.descriptors[1]), error);
  if (mapped == nullptr) return absl::UnimplementedError(error);
  auto gauges = lane::MappedGauges::Map(memory.descriptors[2], error);
  if (gauges == nullptr) return absl::UnimplementedError(error);
  const std::lock_guard hold(mutex_);
  lane_ = std::move(mapped);
  gauges_ = std::move(gauges);
  return absl::OkStatus();
}

void ClientLane::Close(const absl::Status& why) {
  std::shared_ptr<lane::Lane> closed;
  {
    const std::lock_guard hold(mutex_);
    closed = std::move(lane_);
    lane_ = nullptr;
    gauges_ = nullptr;
    why_not_ = why;
  }
  if (closed != nullptr) closed->Close();
}

absl::Status ClientLane::why_not() const {
  const std::lock_guard hold(mutex_);
  if (lane_ == nullptr) return why_not_;
  if (lane_->is_closed()) {
    return absl::UnavailableError("pandod has closed it");
  }
  return absl::OkStatus();
}

std::optional<lane::Gauges> ClientLane::ReadGauges() const {
  std::shared_ptr<const lane::MappedGauges> gauges;
  {
    const std::lock_guard hold(mutex_);
    if (lane_ != nullptr && !lane_->is_closed()) gauges = gauges_;
  }
  return gauges == nullptr ? std::nullopt : gauges->Read();
}

std::shared_ptr<lane::Lane> ClientLane::lane() const {
  const std::lock_guard hold(mutex_);
  return lane_;
}

std::optional<lane::Call> ClientLane::Prepare(
    const LaneCallShape& shape, const google::protobuf::MessageLite& request,
    const PackedTokens& tokens) const {
  const std::shared_ptr<lane::Lane> lane = this->lane();
  if (lane == nullptr) return std::nullopt;
  std::optional<lane::Call> call =
      lane->NewCall(shape.method, request.ByteSizeLong() + tokens.ByteSize(),
                    shape.answer_bytes);
  if (call.has_value()) {
    tokens.Write(request.SerializeWithCachedSizesToArray(
        reinterpret_cast<uint8_t*>(call->request().data())));
  }
  return call;
}

std::optional<absl::Status> ClientLane::Await(
    lane::Call& call, google::protobuf::MessageLite* response,
    absl::Time deadline) {
  switch (call.Await(OnLaneClock(deadline))) {
    case Outcome::kAnswered:
      break;
    case Outcome::kTimedOut:
      return absl::DeadlineExceededError("no answer in time on the lane");
    case Outcome::kTooLarge:
    case Outcome::kClosed:
      return std::nullopt;
  }
  const absl::Status read = ReadAnswer(call, response);
  if (!call.HasIntactAnswer()) return std::nullopt;
  return read;
}

}  // namespace client
}  // namespace pando
