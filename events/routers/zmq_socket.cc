#include "events/routers/zmq_socket.h"

#include <array>
#include <cerrno>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"

namespace pando {
namespace {

// The largest part of a message that is accepted: a topic, or a request for a
// replay.
constexpr int64_t kMaxReceivedBytes = 1'024;
// How long a closed socket goes on sending messages that wait.
constexpr int kLingerMs = 200;

// ZMQ does not look up host names here; for a host name its error is "no such
// device".
std::string BindErrorText(const zmq::error_t& error) {
  if (error.num() != ENODEV) return error.what();
  return "its host must be an IP address, a network interface or *";
}

}  // namespace

absl::StatusOr<BoundSocket> BindZmqSocket(
    zmq::context_t& context, zmq::socket_type type, const std::string& endpoint,
    const std::function<void(zmq::socket_t&)>& configure) {
  try {
    zmq::socket_t socket(context, type);
    socket.set(zmq::sockopt::maxmsgsize, kMaxReceivedBytes);
    socket.set(zmq::sockopt::linger, kLingerMs);
    // Keepalive closes the connections of peers whose machines are gone.
    socket.set(zmq::sockopt::tcp_keepalive, 1);
    socket.set(zmq::sockopt::ipv6, absl::StrContains(endpoint, '[') ? 1 : 0);
    configure(socket);
    PeerGuard peers(context, socket);
    socket.bind(endpoint);
    return BoundSocket{std::move(socket), std::move(peers)};
  } catch (const zmq::error_t& error) {
    return absl::UnavailableError(absl::StrFormat(
        "%s cannot be bound: %s", endpoint, BindErrorText(error)));
  }
}

zmq::message_t NumberMessage(uint64_t number) {
  std::array<uint8_t, sizeof(number)> bytes;
  for (size_t i = bytes.size(); i-- > 0; number >>= 8) {
    bytes[i] = static_cast<uint8_t>(number);
  }
  return zmq::message_t(bytes.data(), bytes.size());
}

zmq::message_t PayloadMessage(const Frame& frame) {
  using Payload = std::shared_ptr<const std::string>;
  auto* const holder = new Payload(frame.payload);
  return zmq::message_t(
      const_cast<char*>(frame.payload->data()), frame.payload->size(),
      [](void*, void* held) { delete static_cast<Payload*>(held); }, holder);
}

}  // namespace pando
