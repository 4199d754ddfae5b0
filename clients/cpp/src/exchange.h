#ifndef PANDO_CLIENTS_CPP_SRC_EXCHANGE_H_
#define PANDO_CLIENTS_CPP_SRC_EXCHANGE_H_

#include <google/protobuf/message_lite.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "clients/cpp/src/client_lane.h"
#include "clients/cpp/src/lane_methods.h"

namespace pando {
inline namespace client {

// The first exchange of one call of a batch. The batch runs the method of
// Client twice with the same arguments: the first run gives its request to this
// object and stops; after the batch was sent, the second run takes the answer
// from here and goes on. So the code around an exchange (handles that are gone,
// repeats, locks that move) exists only once.
//
// Owned by Batch; thread-compatible.
class Exchange {
 public:
  // The request is written to `lane` if it fits there.
  explicit Exchange(const ClientLane* lane) : lane_(lane) {}

  // Says that the request must not go on the lane. Must be called before the
  // first run.
  void LeaveLane() { lane_ = nullptr; }
  // The call uses this instead of sending a request. The first run takes the
  // request and returns ABORTED; the second run returns the answer. Returns
  // none if the request must be sent as outside a batch.
  std::optional<absl::Status> Take(const LaneCallShape& shape,
                                   const google::protobuf::MessageLite& request,
                                   const PackedTokens& tokens,
                                   google::protobuf::MessageLite* response,
                                   absl::Time deadline);
  // The request id of the call, the same in both runs.
  uint64_t RequestId(const std::function<uint64_t()>& next) {
    if (!request_id_.has_value()) request_id_ = next();
    return *request_id_;
  }

  // Returns whether the first run has made a request and no answer was given
  // yet; then there must be a second run.
  bool has_request() const { return state_ == State::kTaken; }
  // Begins the second run.
  void GiveAnswer() { state_ = State::kGiving; }
  // The request on the lane; null if it is not there.
  lane::Call* lane_call() { return call_.has_value() ? &*call_ : nullptr; }
  // If the request is not on the lane, these are the serialized request and its
  // method, for a batch over gRPC.
  const std::string& request() const { return request_; }
  lane::Method method() const { return method_; }
  // The answer of the batch over gRPC: a serialized response, or an error.
  void SetAnswer(absl::Status status, std::string response) {
    answer_ = {std::move(status), std::move(response)};
  }

 private:
  enum class State { kEmpty, kTaken, kGiving, kOver };

  const ClientLane* lane_;  // null if the request must not go on it
  State state_ = State::kEmpty;
  std::optional<uint64_t> request_id_;
  std::optional<lane::Call> call_;
  std::string request_;
  lane::Method method_ = lane::Method::kMatchPrefix;  // set by the first run
  std::optional<std::pair<absl::Status, std::string>> answer_;
};

}  // namespace client
}  // namespace pando

#endif  // PANDO_CLIENTS_CPP_SRC_EXCHANGE_H_
