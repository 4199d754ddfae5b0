#ifndef PANDO_REPLAY_PANDOD_PROCESS_H_
#define PANDO_REPLAY_PANDOD_PROCESS_H_

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace pando {

// A pandod, or another server, that this process has started. Owned by the
// caller; move-only; thread-compatible. The destructor kills the process, and
// it also dies when the thread that started it ends.
class PandodProcess {
 public:
  // Runs `program` on the Unix socket at `socket_path` with `flags`, and waits
  // until it accepts connections there.
  static absl::StatusOr<PandodProcess> Start(
      const std::string& program, const std::string& socket_path,
      const std::vector<std::string>& flags);

  PandodProcess(PandodProcess&& other) noexcept
      : pid_(std::exchange(other.pid_, 0)) {}
  PandodProcess& operator=(PandodProcess&& other) noexcept {
    std::swap(pid_, other.pid_);
    return *this;
  }
  ~PandodProcess() { Kill(); }

  pid_t pid() const { return pid_; }

  // Kills the process with SIGKILL, as a crash would end it, and waits for its
  // end.
  void Kill();

  // Ends the process with SIGTERM, as an operator would, and waits for its end.
  // Fails unless it exits with status 0.
  absl::Status Stop();

 private:
  explicit PandodProcess(pid_t pid) : pid_(pid) {}

  // Sends the signal and reaps the process; returns the status of waitpid.
  int End(int signal);

  pid_t pid_;  // zero once it has ended
};

}  // namespace pando

#endif  // PANDO_REPLAY_PANDOD_PROCESS_H_
