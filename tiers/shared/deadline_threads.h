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
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace pando {

// Threads for work that may hang, such as calls to a folder whose server is
// gone. Callers give up the wait after a timeout. Owned by those
// who load from a shared store or store there; thread-safe. The destructor
// waits for work that still hangs.
class DeadlineThreads {
 public:
  using Work = std::function<void()>;

  // Returns the status of a call that was given up.
  static absl::Status Timeout() {
    return absl::DeadlineExceededError("timeout");
  }

  explicit DeadlineThreads(size_t threads);
  ~DeadlineThreads();
  DeadlineThreads(const DeadlineThreads&) = delete;
  DeadlineThreads& operator=(const DeadlineThreads&) = delete;

  // Pieces of work that are waited for, and given up, together.
  struct Batch;

  // Begins a batch: the threads do its pieces side by side, after those of
  // earlier batches. Work may go on after it was given up, so it must own all
  // that it uses.
  std::shared_ptr<Batch> Begin(std::vector<Work> pieces,
                               absl::Duration timeout);
  // Waits for the batch until its timeout, which counts from Begin. Returns
  // whether all its pieces were done. If not, the batch is given up: pieces
  // that have not begun never begin.
  bool End(const std::shared_ptr<Batch>& batch);
  // Begins a batch and waits for it, as End does.
  bool Run(std::vector<Work> pieces, absl::Duration timeout) {
    return End(Begin(std::move(pieces), timeout));
  }

 private:
  struct Task {
    Work work;
    std::shared_ptr<Batch> batch;
  };

  void RunTasks();
  // Waits for the next task; returns none once the threads are to stop.
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
