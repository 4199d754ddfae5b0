#include "bench/kv_events/plain_sender.h"

#include <algorithm>
#include <chrono>
#include <string>

namespace pando::bench {
namespace {

// As pandod's publisher has them.
constexpr std::chrono::milliseconds kPeriod{2};
constexpr size_t kFrameBytes = 64 << 10;

using Clock = std::chrono::steady_clock;

}  // namespace

PlainSender::PlainSender(const std::string& endpoint)
    : payload_(kFrameBytes, 'x'), socket_(context_, zmq::socket_type::pub) {
  socket_.set(zmq::sockopt::linger, 0);
  socket_.bind(endpoint);
  thread_ = std::jthread([this] { Run(); });
}

void PlainSender::Run() {
  Clock::time_point before = Clock::now();
  while (!is_over_) {
    std::this_thread::sleep_for(kPeriod);
    const Clock::time_point now = Clock::now();
    const std::chrono::duration<double> passed = now - before;
    before = now;
    auto bytes = static_cast<size_t>(rate_ * passed.count());
    while (bytes > 0) {
      const size_t size = std::min(bytes, payload_.size());
      SendFrame(size);
      bytes -= size;
    }
  }
}

void PlainSender::SendFrame(size_t bytes) {
  socket_.send(zmq::buffer("topic"), zmq::send_flags::sndmore);
  socket_.send(zmq::buffer("a number"), zmq::send_flags::sndmore);
  zmq::message_t payload(const_cast<char*>(payload_.data()), bytes, nullptr);
  socket_.send(payload, zmq::send_flags::none);
}

}  // namespace pando::bench
