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

// The first exchange of one call of a batch: its request is taken here when the
// call is made, and its answer is given when the call is made a second time,
// with the same arguments. So that what a call does before and after its
// exchange (handles that are gone, repeats, locks that move) stands once.
//
// Owned by Batch; thread-compatible.
class Exchange {
 public:
  // `lane`: the request goes on it, where it fits.
  explicit Exchange(const ClientLane* lane) : lane_(lane) {}

  // For the call: in place of sending a request. None: it is to be sent as any
  // other.
  std::optional<absl::Status> Take(const LaneCallShape& shape,
                                   const google::protobuf::MessageLite& request,
                                   const PackedTokens& tokens,
                                   google::protobuf::MessageLite* response,
                                   absl::Time deadline);
  // The request id of the call: the same the second time.
  uint64_t RequestId(const std::function<uint64_t()>& next) {
    if (!request_id_.has_value()) request_id_ = next();
    return *request_id_;
  }

  // Whether the call, made for the first time, came to its request: it is to be
  // made again.
  bool has_request() const { return state_ == State::kTaken; }
  // From now on the call is made for the second time.
  void GiveAnswer() { state_ = State::kGiving; }
  // That request, on the lane; null: it is not there.
  lane::Call* lane_call() { return call_.has_value() ? &*call_ : nullptr; }
  // Or as it is, and its number in a batch.
  const std::string& request() const { return request_; }
  lane::Method method() const { return method_; }
  // What came back for it: a serialized response, or an error.
  void SetAnswer(absl::Status status, std::string response) {
    answer_ = {std::move(status), std::move(response)};
  }

 private:
  enum class State { kEmpty, kTaken, kGiving, kOver };

  const ClientLane* const lane_;
  State state_ = State::kEmpty;
  std::optional<uint64_t> request_id_;
  std::optional<lane::Call> call_;
  std::string request_;
  lane::Method method_ = {};
  std::optional<std::pair<absl::Status, std::string>> answer_;
};

}  // namespace client
}  // namespace pando

#endif  // PANDO_CLIENTS_CPP_SRC_EXCHANGE_H_
