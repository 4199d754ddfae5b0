#ifndef PANDO_EVENTS_ROUTERS_REPLAY_SOCKET_H_
#define PANDO_EVENTS_ROUTERS_REPLAY_SOCKET_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <zmq.hpp>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "events/routers/frame_history.h"
#include "events/routers/zmq_socket.h"

namespace pando {

// A ZMQ ROUTER socket where subscribers of one worker's stream ask for all
// frames from a number on. If the history does not have all of them, the answer
// is the end mark alone, because a subscriber would not notice a gap. A peer
// that does not read its answers holds up no other peer. For one thread at a
// time.
class ReplaySocket {
 public:
  struct Outcome {
    uint32_t answered = 0;
    // Requests whose frames the history does not have.
    uint32_t refused = 0;
  };

  // The arguments and errors are those of SubscriberSocket::Bind.
  static absl::StatusOr<ReplaySocket> Bind(zmq::context_t& context,
                                           const std::string& endpoint,
                                           std::string topic);

  // Takes requests, and sends as many frames as can be sent without waiting.
  // Returns how many requests it has finished.
  Outcome Serve(const FrameHistory& history);

 private:
  // The requests of one peer that are not answered yet, in their order: of
  // each, the number of the frame that is sent next.
  using Requests = std::deque<uint64_t>;
  enum class Sent { kYes, kLater, kGone };

  ReplaySocket(BoundSocket bound, std::string topic)
      : socket_(std::move(bound.socket)),
        peers_(std::move(bound.peers)),
        topic_(std::move(topic)) {}

  // Returns false when there is no request.
  bool TakeRequest();
  // Returns whether the requests are fully answered.
  bool Answer(const std::string& peer, Requests& requests,
              const FrameHistory& history, Outcome& outcome);
  // Sends frames up to the last one, then the end mark. `next` is the number of
  // the first frame that has not been sent yet.
  Sent SendFrames(const std::string& peer, const FrameHistory& history,
                  uint64_t& next);
  Sent SendFrame(const std::string& peer, const Frame& frame);
  Sent SendEnd(const std::string& peer);
  Sent Send(const std::string& peer, const std::string& topic,
            zmq::message_t number, zmq::message_t payload);

  zmq::socket_t socket_;
  PeerGuard peers_;
  std::string topic_;
  absl::flat_hash_map<std::string, Requests> requests_;  // by peer
};

}  // namespace pando

#endif  // PANDO_EVENTS_ROUTERS_REPLAY_SOCKET_H_
