#include "events/routers/replay_socket.h"

#include <cerrno>
#include <limits>
#include <optional>
#include <utility>
#include <vector>
#include <zmq_addon.hpp>

#include "base/status_macros.h"
#include "events/routers/zmq_socket.h"

namespace pando {
namespace {

// How many requests are taken in one turn, because live frames wait meanwhile,
// and how many of one peer are kept. Further requests of a peer that does not
// read its answers are dropped.
constexpr size_t kMaxRequests = 1'000;
// Stands in place of a frame's number at the end of a replay; the payload is
// empty.
constexpr uint64_t kEndMark = std::numeric_limits<uint64_t>::max();

uint64_t NumberIn(const zmq::message_t& message) {
  uint64_t number = 0;
  for (size_t i = 0; i < message.size(); ++i) {
    number = number << 8 | message.data<uint8_t>()[i];
  }
  return number;
}

}  // namespace

absl::StatusOr<ReplaySocket> ReplaySocket::Bind(zmq::context_t& context,
                                                const std::string& endpoint,
                                                std::string topic) {
  ASSIGN_OR_RETURN(BoundSocket bound,
                   BindZmqSocket(context, zmq::socket_type::router, endpoint,
                                 [](zmq::socket_t& socket) {
                                   // Makes ZMQ report peers that are gone or
                                   // have too much waiting, where it would drop
                                   // messages silently.
                                   socket.set(zmq::sockopt::router_mandatory,
                                              1);
                                 }));
  return ReplaySocket(std::move(bound), std::move(topic));
}

ReplaySocket::Outcome ReplaySocket::Serve(const FrameHistory& history) {
  for (size_t i = 0; i < kMaxRequests && TakeRequest(); ++i) {
  }
  peers_.CloseExcess();
  Outcome outcome;
  absl::erase_if(requests_, [&](auto& of) {
    return Answer(of.first, of.second, history, outcome);
  });
  return outcome;
}

bool ReplaySocket::TakeRequest() {
  std::vector<zmq::message_t> parts;
  if (!zmq::recv_multipart(socket_, std::back_inserter(parts),
                           zmq::recv_flags::dontwait)) {
    return false;
  }
  peers_.Took(parts.back());
  // The parts are the identity of the peer, the delimiter of ZMQ's requests,
  // and a number. Other messages get no answer.
  if (parts.size() == 3 && parts[1].size() == 0 &&
      parts[2].size() == sizeof(uint64_t)) {
    Requests& requests = requests_[parts[0].to_string()];
    if (requests.size() < kMaxRequests) {
      requests.push_back(NumberIn(parts[2]));
    }
  }
  return true;
}

bool ReplaySocket::Answer(const std::string& peer, Requests& requests,
                          const FrameHistory& history, Outcome& outcome) {
  for (; !requests.empty(); requests.pop_front()) {
    // Live frames may have pushed frames out of the history that this peer has
    // not been sent yet.
    const bool is_held = history.HoldsAllFrom(requests.front());
    const Sent sent =
        is_held ? SendFrames(peer, history, requests.front()) : SendEnd(peer);
    if (sent == Sent::kLater) return false;
    ++(is_held ? outcome.answered : outcome.refused);
    if (sent == Sent::kGone) return true;
  }
  return true;
}

ReplaySocket::Sent ReplaySocket::SendFrames(const std::string& peer,
                                            const FrameHistory& history,
                                            uint64_t& next) {
  while (const std::optional<Frame> frame = history.Find(next)) {
    const Sent sent = SendFrame(peer, *frame);
    if (sent != Sent::kYes) return sent;
    ++next;
  }
  return SendEnd(peer);
}

ReplaySocket::Sent ReplaySocket::SendFrame(const std::string& peer,
                                           const Frame& frame) {
  return Send(peer, topic_, NumberMessage(frame.sequence),
              PayloadMessage(frame));
}

ReplaySocket::Sent ReplaySocket::SendEnd(const std::string& peer) {
  return Send(peer, "", NumberMessage(kEndMark), zmq::message_t());
}

// ZMQ takes all parts of a message if it takes the first one.
ReplaySocket::Sent ReplaySocket::Send(const std::string& peer,
                                      const std::string& topic,
                                      zmq::message_t number,
                                      zmq::message_t payload) {
  constexpr auto kPart = zmq::send_flags::sndmore | zmq::send_flags::dontwait;
  try {
    if (!socket_.send(zmq::buffer(peer), kPart)) return Sent::kLater;
    socket_.send(zmq::message_t(), kPart);
    socket_.send(zmq::buffer(topic), kPart);
    socket_.send(number, kPart);
    socket_.send(payload, zmq::send_flags::dontwait);
  } catch (const zmq::error_t& error) {
    if (error.num() != EHOSTUNREACH) throw;
    return Sent::kGone;
  }
  return Sent::kYes;
}

}  // namespace pando
