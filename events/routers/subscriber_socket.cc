#include "events/routers/subscriber_socket.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "events/routers/zmq_socket.h"

namespace pando {
namespace {

// How a message about a subscription begins.
constexpr uint8_t kGoes = 0;
constexpr uint8_t kComes = 1;

}  // namespace

absl::StatusOr<SubscriberSocket> SubscriberSocket::Bind(
    zmq::context_t& context, const std::string& endpoint, std::string topic) {
  if (topic.size() > kMaxTopicBytes) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "kv-events-topic with the names in it has %u bytes for %s; must be at "
        "most %u",
        topic.size(), endpoint, kMaxTopicBytes));
  }
  ASSIGN_OR_RETURN(BoundSocket bound,
                   BindZmqSocket(context, zmq::socket_type::xpub, endpoint,
                                 [](zmq::socket_t& socket) {
                                   socket.set(zmq::sockopt::sndhwm,
                                              kMaxWaitingFrames);
                                   // Makes ZMQ report each subscription and
                                   // each end of one, not only the first of a
                                   // topic.
                                   socket.set(zmq::sockopt::xpub_verboser, 1);
                                 }));
  return SubscriberSocket(std::move(bound), std::move(topic));
}

// For subscribers that have too many messages waiting ZMQ either drops the
// message silently or, if it is told to, refuses it as a whole. So it is asked
// the second way first.
bool SubscriberSocket::Send(const Frame& frame) {
  socket_.set(zmq::sockopt::xpub_nodrop, 1);
  const bool reaches_all = SendTopic();
  if (!reaches_all) {
    socket_.set(zmq::sockopt::xpub_nodrop, 0);
    SendTopic();
  }
  zmq::message_t number = NumberMessage(frame.sequence);
  socket_.send(number, zmq::send_flags::sndmore | zmq::send_flags::dontwait);
  zmq::message_t payload = PayloadMessage(frame);
  socket_.send(payload, zmq::send_flags::dontwait);
  return reaches_all;
}

bool SubscriberSocket::TakeArrivals() {
  bool has_arrivals = false;
  zmq::message_t message;
  while (socket_.recv(message, zmq::recv_flags::dontwait)) {
    if (message.size() == 0) continue;
    // The topic follows the first byte. Other messages mean nothing.
    const uint8_t change = *message.data<uint8_t>();
    if (change == kComes) {
      peers_.Took(message, 1);
      ++subscribers_;
      has_arrivals = true;
    } else if (change == kGoes && subscribers_ > 0) {
      peers_.Took(message, -1);
      --subscribers_;
    }
  }
  peers_.CloseExcess();
  return has_arrivals;
}

bool SubscriberSocket::SendTopic() {
  return socket_
      .send(zmq::buffer(topic_),
            zmq::send_flags::sndmore | zmq::send_flags::dontwait)
      .has_value();
}

}  // namespace pando
