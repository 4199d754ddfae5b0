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
// Owned by Connection. Thread-safe: one thread opens and closes it, any may
// call.
class ClientLane {
 public:
  // Opens it, with what a token was redeemed for. On an error it stays closed.
  absl::Status Open(ReceivedMemory memory, uint32_t page_tokens);
  // Closes the lane. Calls without an answer are made again over gRPC.
  void Close(const absl::Status& why);

  bool is_open() const { return why_not().ok(); }
  // OK while it is open, else why it is not. pandod may have closed it.
  absl::Status why_not() const;
  // None: the lane is not open, or pandod died while it wrote the page.
  std::optional<lane::Gauges> ReadGauges() const;

  // The method of a request, and the room that its answer needs.
  template <OnLane Request>
  LaneCallShape ShapeOf(const Request& request,
                        const PackedTokens& tokens) const {
    LaneCallShape shape = client::ShapeOf(request, page_tokens_);
    shape.answer_bytes +=
        tokens.tokens().size() / page_tokens_ * sizeof(uint32_t);
    return shape;
  }
  // A call with its request and `tokens`, to be submitted. None: there is no
  // lane, or no room on it.
  std::optional<lane::Call> Prepare(
      const LaneCallShape& shape, const google::protobuf::MessageLite& request,
      const PackedTokens& tokens) const;
  // The answer to a call that was submitted. None: it is to be made over gRPC,
  // because the answer did not fit or pandod does not answer here. With a
  // request id it is carried out once all the same.
  static std::optional<absl::Status> Await(
      lane::Call& call, google::protobuf::MessageLite* response,
      absl::Time deadline);

 private:
  // Null while it is not open.
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
