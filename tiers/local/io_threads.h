#ifndef PANDO_TIERS_LOCAL_IO_THREADS_H_
#define PANDO_TIERS_LOCAL_IO_THREADS_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "tiers/local/io_queue.h"

namespace pando {

// Threads that work on blocks side by side, each with a buffer for each block
// that its queue may have on its way: while one is being moved, the thread
// works on another. Owned by LocalTier; one thread uses it at a time.
class IoThreads {
 public:
  // The work for each block; the same thread does both parts.
  struct Work {
    // The transfer before the end; none: nothing more is to be done.
    std::function<std::optional<Transfer>(size_t index, std::byte* buffer)>
        begin;
    std::function<void(size_t index, std::byte* buffer,
                       const absl::Status& moved)>
        end;
  };

  // A thread for each queue. The buffers are aligned to `alignment`, of which
  // their size is a multiple; without a size there are none.
  IoThreads(std::vector<std::unique_ptr<IoQueue>> queues, size_t buffer_bytes,
            size_t alignment);
  ~IoThreads();
  IoThreads(const IoThreads&) = delete;
  IoThreads& operator=(const IoThreads&) = delete;

  // Does the work for each index below `count`, and returns when all is done.
  void ForEach(size_t count, const Work& work);

 private:
  struct Task {
    const Work* work = nullptr;
    size_t index = 0;
  };

  void Run(IoQueue& queue, size_t buffer_bytes, size_t alignment);
  // The next task; none if there is none, or once this is stopped.
  std::optional<Task> Next(bool may_wait);
  void CountDone();
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
  const std::vector<std::unique_ptr<IoQueue>> queues_;
  std::vector<std::thread> threads_;
};

}  // namespace pando

#endif  // PANDO_TIERS_LOCAL_IO_THREADS_H_
