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

// Gives back, in the background, what calls brought that ended without an
// answer: each is repeated until the server says what it brought. Owned by
// Connection. Thread-safe; has a thread once there is something to settle.
class Settlements {
 public:
  // Repeats the call and gives back what it brings. Asked again until its
  // status is the server's answer. Takes no longer than one attempt of a call.
  using Attempt = std::function<absl::Status()>;

  Settlements() = default;
  ~Settlements() { End(); }
  Settlements(const Settlements&) = delete;
  Settlements& operator=(const Settlements&) = delete;

  void Add(Attempt attempt);
  // What is not settled is left to the end of the session.
  void End();

 private:
  void Run();

  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::deque<Attempt> attempts_;
  bool is_ending_ = false;
  std::thread thread_;
};

}  // namespace client
}  // namespace pando

#endif  // PANDO_CLIENTS_CPP_SRC_SETTLEMENTS_H_
