#ifndef PANDO_CLIENTS_CPP_SRC_CLIENT_LANE_H_
#define PANDO_CLIENTS_CPP_SRC_CLIENT_LANE_H_

#include <google/protobuf/message_lite.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "clients/cpp/src/lane_methods.h"
#include "clients/cpp/src/memory_socket.h"
#include "clients/cpp/src/packed_tokens.h"
#include "clients/lane/gauges.h"
#include "clients/lane/lane.h"

namespace pando {
inline namespace client {

// The lane of a client's present session, or the reason why there is none.
//
// Owned by Connection. Thread-safe, but only one thread may call Open and
// Close.
class ClientLane {
 public:
  // Opens the lane in the memory that the memory socket has sent. After an
  // error it stays closed.
  absl::Status Open(ReceivedMemory memory, uint32_t page_tokens);
  // Closes the lane. Calls without an answer are made again over gRPC.
  void Close(const absl::Status& why);

  bool is_open() const { return why_not().ok(); }
  // Returns OK while the lane is open, else why it is not. pandod may have
  // closed it.
  absl::Status why_not() const;
  // Returns none if the lane is not open, or if pandod died while it wrote the
  // page.
  std::optional<lane::Gauges> ReadGauges() const;

  // Returns the method of a request, and the room that its answer may need.
  template <OnLane Request>
  LaneCallShape ShapeOf(const Request& request,
                        const PackedTokens& tokens) const {
    LaneCallShape shape = client::ShapeOf(request, page_tokens_);
    shape.answer_bytes +=
        tokens.tokens().size() / page_tokens_ * sizeof(uint32_t);
    return shape;
  }
  // Returns a call that has its request and `tokens`, and is to be submitted.
  // Returns none if there is no lane, or no room on it.
  std::optional<lane::Call> Prepare(
      const LaneCallShape& shape, const google::protobuf::MessageLite& request,
      const PackedTokens& tokens) const;
  // Waits for the answer to a submitted call; DEADLINE_EXCEEDED if it does not
  // come in time. Returns none if the call must be made again over gRPC,
  // because the answer did not fit or the lane was closed. A call with a
  // request id is still carried out only once.
  static std::optional<absl::Status> Await(
      lane::Call& call, google::protobuf::MessageLite* response,
      absl::Time deadline);

 private:
  // Returns null while it is not open.
  std::shared_ptr<lane::Lane> lane() const;

  std::atomic<uint32_t> page_tokens_ = 1;
  mutable std::mutex mutex_;  // guards what follows
  std::shared_ptr<lane::Lane> lane_;
  std::shared_ptr<const lane::MappedGauges> gauges_;
  absl::Status why_not_;
};

}  // namespace client
}  // namespace pando

#endif  // PANDO_CLIENTS_CPP_SRC_CLIENT_LANE_H_
