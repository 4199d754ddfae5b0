#ifndef PANDO_EVENTS_ROUTERS_SUBSCRIBER_SOCKET_H_
#define PANDO_EVENTS_ROUTERS_SUBSCRIBER_SOCKET_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <zmq.hpp>

#include "absl/status/statusor.h"
#include "events/routers/frame.h"
#include "events/routers/zmq_socket.h"

namespace pando {

// A ZMQ XPUB socket to which subscribers of one worker's stream connect. ZMQ
// reports there each subscription and each cancellation. Sending never waits: a
// subscriber that does not read misses frames once kMaxWaitingFrames wait for
// it. For one thread at a time.
class SubscriberSocket {
 public:
  static constexpr int kMaxWaitingFrames = 1'000;
  // A longer topic could not be subscribed to: see BindZmqSocket.
  static constexpr size_t kMaxTopicBytes = 1'000;

  // `endpoint` is "tcp://host:port"; each frame begins with `topic`. Fails when
  // the topic is too long, or the endpoint cannot be bound.
  static absl::StatusOr<SubscriberSocket> Bind(zmq::context_t& context,
                                               const std::string& endpoint,
                                               std::string topic);

  // Returns false when a subscriber misses the frame, because it does not read.
  bool Send(const Frame& frame);

  // Reads new subscriptions and cancellations. Returns whether there is a new
  // subscription.
  bool TakeArrivals();
  // Returns how many subscriptions there were at the last TakeArrivals.
  uint32_t subscribers() const { return subscribers_; }

 private:
  SubscriberSocket(BoundSocket bound, std::string topic)
      : socket_(std::move(bound.socket)),
        peers_(std::move(bound.peers)),
        topic_(std::move(topic)) {}

  // Returns false when a subscriber would miss the message.
  bool SendTopic();

  zmq::socket_t socket_;
  PeerGuard peers_;
  std::string topic_;
  uint32_t subscribers_ = 0;
};

}  // namespace pando

#endif  // PANDO_EVENTS_ROUTERS_SUBSCRIBER_SOCKET_H_
