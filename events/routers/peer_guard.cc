#include "events/routers/peer_guard.h"

#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "os/monotonic_clock.h"

namespace pando {
namespace {

uint64_t ReceivedBytes(const UniqueFd& connection) {
  tcp_info info = {};
  socklen_t bytes = sizeof(info);
  getsockopt(connection.get(), IPPROTO_TCP, TCP_INFO, &info, &bytes);
  return info.tcpi_bytes_received;
}

// To ZMQ it looks as if the peer had gone.
void Close(const UniqueFd& connection) {
  shutdown(connection.get(), SHUT_RDWR);
}

}  // namespace

PeerGuard::PeerGuard(zmq::context_t& context, zmq::socket_t& socket)
    : monitor_(context, zmq::socket_type::pair) {
  const std::string name =
      absl::StrFormat("inproc://peers-of-%p", socket.handle());
  if (zmq_socket_monitor(socket.handle(), name.c_str(),
                         ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED) != 0) {
    throw zmq::error_t();
  }
  watched_.reset(socket.handle());
  // There is no limit on waiting messages, because ZMQ's thread would wait if
  // there were no room.
  monitor_.set(zmq::sockopt::rcvhwm, 0);
  monitor_.connect(name);
}

void PeerGuard::Took(zmq::message_t& message, int subscriptions) {
  TakeChanges();
  const auto sender =
      connections_.find(zmq_msg_get(message.handle(), ZMQ_SRCFD));
  if (sender == connections_.end()) return;  // it is gone
  Connection& connection = sender->second;
  connection.taken_at = MonotonicNow();
  connection.taken_bytes = ReceivedBytes(connection.socket);
  connection.subscriptions += subscriptions;
  if (connection.subscriptions > kMaxSubscriptions) Close(connection.socket);
}

void PeerGuard::CloseExcess() {
  TakeChanges();
  const absl::Time now = MonotonicNow();
  for (const auto& [_, connection] : connections_) {
    const uint64_t untaken =
        ReceivedBytes(connection.socket) - connection.taken_bytes;
    const auto seconds =
        static_cast<uint64_t>(absl::ToInt64Seconds(now - connection.taken_at));
    const uint64_t of_heartbeats =
        std::min(kHeartbeatBytes * seconds, kMaxHeartbeatBytes);
    if (untaken > kMaxUntakenBytes + of_heartbeats) Close(connection.socket);
  }
}

// Each change has two parts: the event with the descriptor, and an address.
void PeerGuard::TakeChanges() {
  zmq::message_t change;
  while (monitor_.recv(change, zmq::recv_flags::dontwait)) {
    uint16_t event = 0;
    int32_t descriptor = -1;
    if (change.size() != sizeof(event) + sizeof(descriptor)) continue;
    std::memcpy(&event, change.data(), sizeof(event));
    std::memcpy(&descriptor, change.data<std::byte>() + sizeof(event),
                sizeof(descriptor));
    connections_.erase(descriptor);
    if (event != ZMQ_EVENT_ACCEPTED) continue;
    UniqueFd own(fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
    if (!own.valid()) continue;
    if (connections_.size() >= kMaxConnections) Close(own);
    connections_[descriptor] = {.socket = std::move(own),
                                .taken_at = MonotonicNow()};
  }
}

}  // namespace pando
