#ifndef PANDO_SERVICE_KV_EVENTS_REPLAY_SOCKET_H_
#define PANDO_SERVICE_KV_EVENTS_REPLAY_SOCKET_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <zmq.hpp>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "service/kv_events/frame_history.h"

namespace pando {

// Where subscribers of one worker's stream ask for the frames from a number on:
// a ZMQ ROUTER socket. A request is answered only if the history has all of
// them, and else with the end mark alone; an answer with a hole would be
// believed. A peer that does not read its answers holds up no other peer.
// For one thread at a time.
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
  // The requests of one peer that are not answered yet, in their order: of
  // each, the number of the frame that is sent next.
  using Requests = std::deque<uint64_t>;
  enum class Sent { kYes, kLater, kGone };

  ReplaySocket(zmq::socket_t socket, std::string topic)
      : socket_(std::move(socket)), topic_(std::move(topic)) {}

  // False when there is none.
  bool TakeRequest();
  // True if nothing of them is left to be sent.
  bool Answer(const std::string& peer, Requests& requests,
              const FrameHistory& history, Outcome& outcome);
  // Sends frames up to the last one, and the end mark. `next` is the first that
  // has not been sent yet.
  Sent SendFrames(const std::string& peer, const FrameHistory& history,
                  uint64_t& next);
  Sent SendFrame(const std::string& peer, const Frame& frame);
  Sent SendEnd(const std::string& peer);
  Sent Send(const std::string& peer, const std::string& topic,
            zmq::message_t number, zmq::message_t payload);

  zmq::socket_t socket_;
  std::string topic_;
  absl::flat_hash_map<std::string, Requests> requests_;  // by peer
};

}  // namespace pando

#endif  // PANDO_SERVICE_KV_EVENTS_REPLAY_SOCKET_H_
