#ifndef PANDO_REPLAY_WORKER_PROCESS_H_
#define PANDO_REPLAY_WORKER_PROCESS_H_

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "pando/tls.h"
#include "replay/worker.h"

namespace pando::replay {

struct WorkerAddresses {
  std::string pandod;
  // The credentials that pandod is shown, as in ConnectOptions.
  std::optional<TlsFiles> tls;
  std::string token;
  // If it is empty, no floor is measured.
  std::string echo_server;
};

// A worker in a process of its own, as engines are. It connects, reports that
// it is ready, waits for Go, serves its share of the trace, and sends the
// result over a socket pair:
//
//   WaitReady of all workers; Go of all workers; Finish of all workers
//
// The worker process itself prints its errors. Owned by the caller; move-only;
// thread-compatible.
class WorkerProcess {
 public:
  // Forks the worker. REQUIRES: this process has not used gRPC yet, because
  // gRPC's threads do not survive a fork.
  static absl::StatusOr<WorkerProcess> Start(const WorkerAddresses& addresses,
                                             const Trace& trace,
                                             const WorkerOptions& options);

  WorkerProcess(WorkerProcess&& other) noexcept
      : pid_(std::exchange(other.pid_, 0)),
        socket_(std::exchange(other.socket_, -1)) {}
  WorkerProcess& operator=(WorkerProcess&&) = delete;
  // Kills the worker if it still runs.
  ~WorkerProcess();

  // Waits until the worker has connected. Fails if it has ended instead.
  absl::Status WaitReady();
  // Lets the worker begin. REQUIRES: WaitReady has returned OK.
  absl::Status Go();
  // Waits at most for `limit` until the worker has sent its result or has
  // ended. Returns whether it has.
  bool HasEnded(absl::Duration limit) const;
  // Receives the result and waits until the process has ended, so that its
  // session is over. Fails if the worker has failed.
  absl::StatusOr<WorkerResult> Finish();

 private:
  WorkerProcess(pid_t pid, int socket) : pid_(pid), socket_(socket) {}

  pid_t pid_;
  int socket_;
};

}  // namespace pando::replay

#endif  // PANDO_REPLAY_WORKER_PROCESS_H_
