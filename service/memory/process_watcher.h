#ifndef PANDO_SERVICE_MEMORY_PROCESS_WATCHER_H_
#define PANDO_SERVICE_MEMORY_PROCESS_WATCHER_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/ids.h"
#include "base/unique_fd.h"

namespace pando {

// Tells when the processes that mapped the pool for a session are gone, so that
// nothing can be writing to its pages any more. Owned by Server. Any thread may
// call it; on_exit is called on its own thread and not after destruction.
class ProcessWatcher {
 public:
  using OnExit = std::function<void(SessionId session)>;

  static absl::StatusOr<std::unique_ptr<ProcessWatcher>> Start(OnExit on_exit);
  ~ProcessWatcher();
  ProcessWatcher(const ProcessWatcher&) = delete;
  ProcessWatcher& operator=(const ProcessWatcher&) = delete;

  // on_exit is called once when this process, and every other one watched for
  // the session, has ended. An error (the process lives in another PID
  // namespace, say): the session is not watched at all, now or later, because
  // part of its processes would not tell enough.
  absl::Status Watch(SessionId session, pid_t pid);

  // Does not wait for a call of on_exit that is on its way.
  void Forget(SessionId session);

 private:
  struct WatchedProcess {
    SessionId session;
    pid_t pid;
    UniqueFd pidfd;
  };

  ProcessWatcher(OnExit on_exit, UniqueFd epoll, UniqueFd stop);

  void Run();
  absl::Status Add(SessionId session, pid_t pid);
  // The session, when that was the last of its processes.
  std::optional<SessionId> Remove(uint64_t watch);
  bool IsWatched(SessionId session) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // The same living process is watched for the session already.
  bool IsWatched(SessionId session, pid_t pid) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  const OnExit on_exit_;
  const UniqueFd epoll_;
  const UniqueFd stop_;
  absl::Mutex mutex_;
  // By a number that is never used again, so that a late event of a watch that
  // was forgotten means nothing.
  absl::flat_hash_map<uint64_t, WatchedProcess> watched_
      ABSL_GUARDED_BY(mutex_);
  // Sessions with a process that could not be watched, until forgotten.
  absl::flat_hash_set<SessionId> unwatchable_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_watch_ ABSL_GUARDED_BY(mutex_) = 0;
  std::thread thread_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_MEMORY_PROCESS_WATCHER_H_
