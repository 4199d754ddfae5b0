#ifndef PANDO_CLIENTS_CPP_SRC_SETTLEMENTS_H_
#define PANDO_CLIENTS_CPP_SRC_SETTLEMENTS_H_

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "absl/status/status.h"

namespace pando {
inline namespace client {

// Settles calls that ended without an answer, in the background. It repeats
// each call until the server says what it did, and gives back what the call has
// locked or reserved. Owned by Connection. Thread-safe. Its thread starts when
// there is something to settle.
class Settlements {
 public:
  // Repeats a call and gives back what it took. It is called again until its
  // status shows that the server has answered. Must take no longer than one
  // attempt of a call.
  using Attempt = std::function<absl::Status()>;

  Settlements() = default;
  ~Settlements() { End(); }
  Settlements(const Settlements&) = delete;
  Settlements& operator=(const Settlements&) = delete;

  void Add(Attempt attempt);
  // Stops the thread. The end of the session settles the rest.
  void End();

 private:
  void Run();

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<Attempt> attempts_;
  bool is_ending_ = false;
  std::thread thread_;
};

}  // namespace client
}  // namespace pando

#endif  // PANDO_CLIENTS_CPP_SRC_SETTLEMENTS_H_
