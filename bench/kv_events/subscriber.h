#ifndef PANDO_BENCH_KV_EVENTS_SUBSCRIBER_H_
#define PANDO_BENCH_KV_EVENTS_SUBSCRIBER_H_

#include <atomic>
#include <string>
#include <thread>
#include <zmq.hpp>

namespace pando::bench {

// A router's subscription to all events of one endpoint. Not thread-safe.
class Subscriber {
 public:
  explicit Subscriber(const std::string& endpoint);

  // Waits for the next frame, and returns its payload; ends the program when
  // none comes in half a minute.
  std::string Next();
  // Drops a part of a frame, and returns its size; 0: none came in a little
  // while.
  size_t DropPart();

 private:
  zmq::context_t context_;
  zmq::socket_t socket_;
};

// How many blocks the events of such a payload, in the map form, say are
// stored.
size_t StoredBlocks(const std::string& payload);

// A router that reads as fast as it can, on a thread of its own, and drops what
// it read.
class Reader {
 public:
  explicit Reader(const std::string& endpoint);
  ~Reader() { is_over_ = true; }

  // How much it has read so far.
  size_t bytes() const { return bytes_; }

 private:
  std::atomic<size_t> bytes_ = 0;
  std::atomic<bool> is_over_ = false;
  std::jthread thread_;
};

}  // namespace pando::bench

#endif  // PANDO_BENCH_KV_EVENTS_SUBSCRIBER_H_
