#ifndef PANDO_SERVICE_KV_EVENTS_ZMQ_SOCKET_H_
#define PANDO_SERVICE_KV_EVENTS_ZMQ_SOCKET_H_

#include <cstdint>
#include <functional>
#include <string>
#include <zmq.hpp>

#include "absl/status/statusor.h"
#include "service/kv_events/frame.h"

namespace pando {

// A socket that serves whoever connects to `endpoint`, and ends connections by
// which messages of more than a kilobyte come. `configure` sets what is its own
// before it is bound. An error says why the endpoint cannot be had.
absl::StatusOr<zmq::socket_t> BindZmqSocket(
    zmq::context_t& context, zmq::socket_type type, const std::string& endpoint,
    const std::function<void(zmq::socket_t&)>& configure);

// The parts of a frame after its topic.
// 8 bytes, big-endian.
zmq::message_t NumberMessage(uint64_t number);
// Shares the payload.
zmq::message_t PayloadMessage(const Frame& frame);

}  // namespace pando

#endif  // PANDO_SERVICE_KV_EVENTS_ZMQ_SOCKET_H_
