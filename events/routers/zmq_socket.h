#ifndef PANDO_EVENTS_ROUTERS_ZMQ_SOCKET_H_
#define PANDO_EVENTS_ROUTERS_ZMQ_SOCKET_H_

#include <cstdint>
#include <functional>
#include <string>
#include <zmq.hpp>

#include "absl/status/statusor.h"
#include "events/routers/frame.h"
#include "events/routers/peer_guard.h"

namespace pando {

// A ZMQ socket that is bound, and the guard of its connections.
struct BoundSocket {
  zmq::socket_t socket;
  PeerGuard peers;
};

// Makes a socket and binds it to `endpoint`. A connection that sends a part of
// more than a kilobyte is closed. `configure` sets further options before the
// socket is bound. An error says why it cannot be bound.
absl::StatusOr<BoundSocket> BindZmqSocket(
    zmq::context_t& context, zmq::socket_type type, const std::string& endpoint,
    const std::function<void(zmq::socket_t&)>& configure);

// The parts of a frame after its topic: the number in 8 bytes, big-endian, and
// the payload, which is not copied.
zmq::message_t NumberMessage(uint64_t number);
zmq::message_t PayloadMessage(const Frame& frame);

}  // namespace pando

#endif  // PANDO_EVENTS_ROUTERS_ZMQ_SOCKET_H_
