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

// Threads that work on blocks side by side. Each has a queue, and a buffer for
// each block that the queue can move at a time: while one block is being moved,
// the thread works on another. Owned by LocalTier. One caller at a time may use
// it.
class IoThreads {
 public:
  // The work on one block, in two parts; the same thread does both.
  struct Work {
    // Prepares the block with this index. Returns the transfer that must be
    // done before `end` is called, or none if there is nothing more to do for
    // the block; then `end` is not called.
    std::function<std::optional<Transfer>(size_t index, std::byte* buffer)>
        begin;
    std::function<void(size_t index, std::byte* buffer,
                       const absl::Status& moved)>
        end;
  };

  // Starts a thread for each queue. Buffers are aligned to `alignment`, and
  // their size must be a multiple of it. There are no buffers if `buffer_bytes`
  // is 0.
  IoThreads(std::vector<std::unique_ptr<IoQueue>> queues, size_t buffer_bytes,
            size_t alignment);
  ~IoThreads();
  IoThreads(const IoThreads&) = delete;
  IoThreads& operator=(const IoThreads&) = delete;

  // Does the work for each index below `count`. Returns when all is done.
  void ForEach(size_t count, const Work& work);

 private:
  struct Task {
    const Work* work = nullptr;
    size_t index = 0;
  };

  void Run(IoQueue& queue, size_t buffer_bytes, size_t alignment);
  // Returns the next task, or none if there is none or the threads are to stop.
  // With `may_wait` it waits for one.
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
