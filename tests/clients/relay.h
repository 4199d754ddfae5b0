#ifndef PANDO_TESTS_CLIENTS_RELAY_H_
#define PANDO_TESTS_CLIENTS_RELAY_H_

#include <atomic>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace pando {

// Passes bytes between a Unix socket and a server behind it, and cuts the
// connections on demand. It stands for a network that breaks while both ends
// live on.
class Relay {
 public:
  Relay(const std::string& path, std::string server);
  ~Relay();

  // Breaks all present connections. Later ones are accepted.
  void Cut();
  // Drops everything that the server sends on the present connections from now
  // on.
  void Mute();
  int accepted() const { return accepted_; }

 private:
  void Accept();
  void Pass(int from, int to, const std::atomic<bool>* is_muted);

  const std::string server_;
  const int listener_;
  std::atomic<int> accepted_ = 0;
  // A flag for each connection, in the order of the connections.
  std::deque<std::atomic<bool>> muted_ ABSL_GUARDED_BY(mutex_);
  absl::Mutex mutex_;
  // The sockets are closed when the relay ends, so that no descriptor is used
  // again before that.
  std::vector<int> sockets_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> passing_ ABSL_GUARDED_BY(mutex_);
  std::thread accepting_;
};

}  // namespace pando

#endif  // PANDO_TESTS_CLIENTS_RELAY_H_
