#ifndef PANDO_SERVICE_TIERS_IO_THREADS_H_
#define PANDO_SERVICE_TIERS_IO_THREADS_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace pando {

// Threads that read and write blocks side by side, each with a buffer of its
// own. Owned by LocalTier; one thread uses it at a time.
class IoThreads {
 public:
  using Work = std::function<void(size_t index, std::byte* buffer)>;

  // The buffers are aligned to `alignment`, of which their size is a multiple.
  IoThreads(size_t threads, size_t buffer_bytes, size_t alignment);
  ~IoThreads();
  IoThreads(const IoThreads&) = delete;
  IoThreads& operator=(const IoThreads&) = delete;

  // Calls `work` with each index below `count`, and returns when all calls
  // have.
  void ForEach(size_t count, const Work& work);

 private:
  struct Task {
    const Work* work;
    size_t index;
  };

  void Run(size_t buffer_bytes, size_t alignment);
  // Waits for what is to be done next; none once this is stopped.
  std::optional<Task> Next();
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return is_stopped_ || next_ < count_;
  }
  bool IsDone() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return done_ == count_;
  }

  absl::Mutex mutex_;
  const Work* work_ ABSL_GUARDED_BY(mutex_) = nullptr;
  size_t count_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t done_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_TIERS_IO_THREADS_H_
