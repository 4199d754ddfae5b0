#ifndef PANDO_REPLAY_PANDOD_PROCESS_H_
#define PANDO_REPLAY_PANDOD_PROCESS_H_

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace pando {

// A pandod that this process started. Owned by the caller, move-only,
// thread-compatible; killed by the destructor, and by the death of the thread
// that started it.
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

  // As a crash: SIGKILL, and waits for the end.
  void Kill();

  // As an operator: SIGTERM, and waits for the end; fails unless it exits 0.
  absl::Status Stop();

 private:
  explicit PandodProcess(pid_t pid) : pid_(pid) {}

  // Signals and reaps; returns what waitpid tells.
  int End(int signal);

  // Zero: ended.
  pid_t pid_;
};

}  // namespace pando

#endif  // PANDO_REPLAY_PANDOD_PROCESS_H_
