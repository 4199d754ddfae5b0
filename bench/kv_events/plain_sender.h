#ifndef PANDO_BENCH_KV_EVENTS_PLAIN_SENDER_H_
#define PANDO_BENCH_KV_EVENTS_PLAIN_SENDER_H_

#include <atomic>
#include <cstddef>
#include <string>
#include <thread>
#include <zmq.hpp>

namespace pando::bench {

// Sends frames without a meaning to all who subscribe at an endpoint. It shows
// the cost of sending and reading as many bytes as those of events.
class PlainSender {
 public:
  explicit PlainSender(const std::string& endpoint);
  ~PlainSender() { is_over_ = true; }

  // Sets the rate from now on; 0 sends nothing. Thread-safe.
  void SetRate(double bytes_per_second) { rate_ = bytes_per_second; }

 private:
  void Run();
  void SendFrame(size_t bytes);

  // Shared by all frames without a copy, as pandod's payloads are.
  const std::string payload_;
  zmq::context_t context_;
  zmq::socket_t socket_;
  std::atomic<double> rate_ = 0;
  std::atomic<bool> is_over_ = false;
  std::jthread thread_;
};

}  // namespace pando::bench

#endif  // PANDO_BENCH_KV_EVENTS_PLAIN_SENDER_H_
