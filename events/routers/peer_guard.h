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

// Closes the connections of a ZMQ socket whose peers take memory without end,
// which ZMQ does not limit: it keeps each part of a message until the last one
// has come, each subscription, and each connection. ZMQ does not close
// connections on request either, so they are closed under it, and it frees what
// it had for them. Owned by the class that has the socket; for one thread at a
// time.
class PeerGuard {
 public:
  static constexpr size_t kMaxConnections = 256;
  static constexpr int kMaxSubscriptions = 64;  // of one connection
  // That a connection received since a message from it was taken. An empty part
  // of a message has two bytes, and takes 64 of memory.
  static constexpr uint64_t kMaxUntakenBytes = uint64_t{128} << 10;
  // And so many more for each second since then, up to a limit: ZMQ's own
  // heartbeats, which are 9 bytes each and are not told from parts.
  static constexpr uint64_t kHeartbeatBytes = 128;
  static constexpr uint64_t kMaxHeartbeatBytes = uint64_t{512} << 10;

  // Watches `socket`, which is not bound yet and outlives this.
  PeerGuard(zmq::context_t& context, zmq::socket_t& socket);

  // A message was taken, which adds so many subscriptions of its sender.
  void Took(zmq::message_t& message, int subscriptions = 0);
  // Closes the connections that are too many, or have sent too much. To be
  // called now and then.
  void CloseExcess();

 private:
  struct Connection {
    UniqueFd socket;  // a descriptor of its own
    absl::Time taken_at;
    uint64_t taken_bytes = 0;
    int subscriptions = 0;
  };

  // ZMQ would wait for a monitor that is closed.
  struct StopMonitor {
    void operator()(void* socket) const {
      zmq_socket_monitor(socket, nullptr, 0);
    }
  };

  void TakeChanges();

  zmq::socket_t monitor_;
  std::unique_ptr<void, StopMonitor> watched_;  // the socket
  // By the descriptor that ZMQ has.
  absl::flat_hash_map<int, Connection> connections_;
};

}  // namespace pando

#endif  // PANDO_EVENTS_ROUTERS_PEER_GUARD_H_
