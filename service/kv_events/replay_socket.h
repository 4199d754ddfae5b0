#ifndef PANDO_SERVICE_KV_EVENTS_REPLAY_SOCKET_H_
#define PANDO_SERVICE_KV_EVENTS_REPLAY_SOCKET_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <zmq.hpp>

#include "absl/status/statusor.h"
#include "service/kv_events/frame_history.h"

namespace pando {

// Where subscribers of one worker's stream ask for the frames from a number on:
// a ZMQ ROUTER socket. A request is answered only if the history has all of
// them, and else with the end mark alone; an answer with a hole would be
// believed. For one thread at a time.
class ReplaySocket {
 public:
  struct Outcome {
    uint32_t answered = 0;
    // Those whose frames the history does not have.
    uint32_t refused = 0;
  };

  // As SubscriberSocket::Bind.
  static absl::StatusOr<ReplaySocket> Bind(zmq::context_t& context,
                                           const std::string& endpoint,
                                           std::string topic);

  // Takes requests and sends what can be sent without waiting; says which
  // requests have been dealt with.
  Outcome Serve(const FrameHistory& history);

 private:
  // A request that is being answered.
  struct Replay {
    std::string peer;  // ZMQ's identity of who asked
    uint64_t next = 0;
  };
  enum class Sent { kYes, kLater, kGone };

  ReplaySocket(zmq::socket_t socket, std::string topic)
      : socket_(std::move(socket)), topic_(std::move(topic)) {}

  // False when there is none.
  bool TakeRequest();
  Sent SendFrame(const std::string& peer, const Frame& frame);
  Sent SendEnd(const std::string& peer);
  Sent Send(const std::string& peer, const std::string& topic,
            zmq::message_t number, zmq::message_t payload);

  zmq::socket_t socket_;
  std::string topic_;
  std::deque<Replay> replays_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_KV_EVENTS_REPLAY_SOCKET_H_
