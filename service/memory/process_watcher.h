#ifndef PANDO_SERVICE_MEMORY_PROCESS_WATCHER_H_
#define PANDO_SERVICE_MEMORY_PROCESS_WATCHER_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/ids.h"
#include "base/unique_fd.h"

namespace pando {

// Reports the end of processes. Owned by Attachments; thread-safe. It calls
// on_exit on its own thread, and never after destruction.
class ProcessWatcher {
 public:
  using OnExit = std::function<void(WriterId writer)>;

  // Starts the thread that calls on_exit.
  static absl::StatusOr<std::unique_ptr<ProcessWatcher>> Start(OnExit on_exit);
  ~ProcessWatcher();
  ProcessWatcher(const ProcessWatcher&) = delete;
  ProcessWatcher& operator=(const ProcessWatcher&) = delete;

  // Begins to watch the process `pid` of a writer. on_exit is called once when
  // the process has ended, maybe before this returns. Returns an error if the
  // process cannot be watched (because it lives in another PID namespace, say),
  // or is gone already. REQUIRES: no writer is watched twice.
  absl::Status Watch(WriterId writer, pid_t pid);

  // Returns whether the writer is watched and its process lives.
  bool IsLiving(WriterId writer) const;

  // Stops watching. A call of on_exit may still be under way when it returns.
  void Forget(WriterId writer);

 private:
  ProcessWatcher(OnExit on_exit, UniqueFd epoll, UniqueFd stop);

  void Run();

  const OnExit on_exit_;
  const UniqueFd epoll_;
  const UniqueFd stop_;
  mutable absl::Mutex mutex_;
  // The pidfds. A late event for a writer that was forgotten is ignored. It
  // cannot hit another writer, because writer numbers are not used again.
  absl::flat_hash_map<WriterId, UniqueFd> watched_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_MEMORY_PROCESS_WATCHER_H_
