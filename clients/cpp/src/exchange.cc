#include "clients/cpp/src/exchange.h"

#include <utility>

namespace pando {
inline namespace client {

std::optional<absl::Status> Exchange::Take(
    const LaneCallShape& shape, const google::protobuf::MessageLite& request,
    const PackedTokens& tokens, google::protobuf::MessageLite* response,
    absl::Time deadline) {
  switch (state_) {
    case State::kEmpty:
      state_ = State::kTaken;
      method_ = shape.method;
      if (lane_ != nullptr) {
        if (auto prepared = lane_->Prepare(shape, request, tokens)) {
          call_.emplace(*std::move(prepared));
        }
      }
      if (!call_.has_value()) {
        request_ = request.SerializeAsString();
        const size_t size = request_.size();
        request_.resize(size + tokens.ByteSize());
        tokens.Write(reinterpret_cast<uint8_t*>(request_.data()) + size);
      }
      return absl::AbortedError("the call waits for its batch to be sent");
    case State::kGiving:
      break;
    case State::kTaken:
    case State::kOver:
      return std::nullopt;
  }
  state_ = State::kOver;
  if (call_.has_value()) {
    std::optional<absl::Status> answered =
        ClientLane::Await(*call_, response, deadline);
    call_.reset();
    return answered;
  }
  if (!answer_.has_value()) return std::nullopt;
  if (!answer_->first.ok()) return answer_->first;
  if (!response->ParseFromString(answer_->second)) {
    return absl::InternalError("the answer is not such a message");
  }
  return absl::OkStatus();
}

}  // namespace client
}  // namespace pando
