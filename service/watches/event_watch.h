#ifndef PANDO_SERVICE_WATCHES_EVENT_WATCH_H_
#define PANDO_SERVICE_WATCHES_EVENT_WATCH_H_

#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "pando/v1/events.pb.h"
#include "service/rpc/server_stream.h"
#include "service/watches/event_history.h"

namespace pando {

// Sends one watcher the events of the history, in order. Sends a snapshot first
// if the watcher knows nothing, and again if it has fallen behind. It holds
// only its position. Lives on the polling thread.
class EventWatch : public StreamSource<grpc::ByteBuffer> {
 public:
  // `history` outlives this.
  EventWatch(const v1::WatchRequest& request, uint64_t epoch,
             EventHistory* history);

  // Messages are encoded WatchResponses.
  Next Fill(grpc::ByteBuffer& message) override;

 private:
  void BeginSnapshot();
  void AddFromSnapshot(std::vector<grpc::Slice>& parts);

  EventHistory* const history_;
  const grpc::Slice epoch_;  // the encoded epoch, part of each message
  // The number of the last event that the watcher knows; none: it knows
  // nothing.
  std::optional<uint64_t> known_;
  // The snapshot that is being sent; null: live events are being sent.
  std::shared_ptr<const EventSnapshot> snapshot_;
  size_t sent_ = 0;  // how many slices of the snapshot were sent
};

}  // namespace pando

#endif  // PANDO_SERVICE_WATCHES_EVENT_WATCH_H_
