#ifndef PANDO_TIERS_SHARED_DEADLINE_THREADS_H_
#define PANDO_TIERS_SHARED_DEADLINE_THREADS_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace pando {

// Threads for work that may hang, as calls to a folder do whose server is gone.
// A caller that waits for it gives up in time. Owned by RemoteLoads and
// RemoteStores; thread-safe. Its destructor waits for work that still hangs.
class DeadlineThreads {
 public:
  using Work = std::function<void()>;

  explicit DeadlineThreads(size_t threads);
  ~DeadlineThreads();
  DeadlineThreads(const DeadlineThreads&) = delete;
  DeadlineThreads& operator=(const DeadlineThreads&) = delete;

  // Pieces of work, which are done or given up together.
  struct Batch;

  // Does all pieces of work side by side, after those that were begun before.
  // Work that was given up may go on, and must own all that it uses.
  std::shared_ptr<Batch> Begin(std::vector<Work> pieces,
                               absl::Duration timeout);
  // Says whether all was done within the timeout, which began with the batch.
  // If not, it is given up: what has not begun never begins.
  bool End(const std::shared_ptr<Batch>& batch);
  bool Run(std::vector<Work> pieces, absl::Duration timeout) {
    return End(Begin(std::move(pieces), timeout));
  }

 private:
  struct Task {
    Work work;
    std::shared_ptr<Batch> batch;
  };

  void RunTasks();
  // Waits for what is to be done next; none once this is stopped.
  std::optional<Task> Next();
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return is_stopped_ || !tasks_.empty();
  }

  absl::Mutex mutex_;
  std::deque<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  bool is_stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace pando

#endif  // PANDO_TIERS_SHARED_DEADLINE_THREADS_H_
