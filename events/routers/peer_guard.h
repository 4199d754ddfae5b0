#ifndef PANDO_EVENTS_ROUTERS_PEER_GUARD_H_
#define PANDO_EVENTS_ROUTERS_PEER_GUARD_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <zmq.hpp>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "base/unique_fd.h"

namespace pando {

// Closes the connections of a ZMQ socket whose peers make ZMQ use too much
// memory. ZMQ sets no limit: it keeps each part of a message until the last
// part has come, each subscription, and each connection. Nor can it close a
// single connection, so this class shuts the connection's socket down; then ZMQ
// frees its memory. Owned by the class that has the ZMQ socket; for one thread
// at a time.
class PeerGuard {
 public:
  static constexpr size_t kMaxConnections = 256;
  static constexpr int kMaxSubscriptions = 64;  // on one connection
  // The most bytes that a connection may have received since a message from it
  // was taken last. An empty part of a message has two bytes, and takes 64
  // bytes of memory.
  static constexpr uint64_t kMaxUntakenBytes = uint64_t{128} << 10;
  // A connection may receive so many bytes more for each second since then, up
  // to a limit. They are for ZMQ's own heartbeats of 9 bytes, which cannot be
  // distinguished from parts of messages.
  static constexpr uint64_t kHeartbeatBytes = 128;
  static constexpr uint64_t kMaxHeartbeatBytes = uint64_t{512} << 10;

  // Watches `socket`, which must not be bound yet and must outlive this object.
  // Throws zmq::error_t.
  PeerGuard(zmq::context_t& context, zmq::socket_t& socket);

  // Must be called after a message was taken from the socket. `subscriptions`
  // says by how many the message changes those of its sender.
  void Took(zmq::message_t& message, int subscriptions = 0);
  // Closes the connections that are too many, or have received too much. Must
  // be called regularly.
  void CloseExcess();

 private:
  struct Connection {
    UniqueFd socket;  // a copy of ZMQ's descriptor
    absl::Time taken_at;
    uint64_t taken_bytes = 0;
    int subscriptions = 0;
  };

  // Stops the monitor. Otherwise ZMQ would wait for it once `monitor_` is
  // closed.
  struct StopMonitor {
    void operator()(void* socket) const {
      zmq_socket_monitor(socket, nullptr, 0);
    }
  };

  void TakeChanges();

  zmq::socket_t monitor_;
  std::unique_ptr<void, StopMonitor> watched_;  // the socket
  // The connections, by ZMQ's descriptors of them.
  absl::flat_hash_map<int, Connection> connections_;
};

}  // namespace pando

#endif  // PANDO_EVENTS_ROUTERS_PEER_GUARD_H_
