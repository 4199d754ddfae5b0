#include "tiers/local/io_threads.h"

#include <pthread.h>

#include <cstdlib>
#include <utility>

#include "base/check.h"

namespace pando {
namespace {

struct FreeBuffer {
  void operator()(std::byte* buffer) const { std::free(buffer); }
};
using Buffer = std::unique_ptr<std::byte, FreeBuffer>;

Buffer MakeBuffer(size_t bytes, size_t alignment) {
  if (bytes == 0) return nullptr;
  Buffer buffer(static_cast<std::byte*>(std::aligned_alloc(alignment, bytes)));
  CHECK(buffer != nullptr);
  return buffer;
}

}  // namespace

IoThreads::IoThreads(std::vector<std::unique_ptr<IoQueue>> queues,
                     size_t buffer_bytes, size_t alignment)
    : queues_(std::move(queues)) {
  for (const std::unique_ptr<IoQueue>& queue : queues_) {
    threads_.emplace_back([this, &queue, buffer_bytes, alignment] {
      Run(*queue, buffer_bytes, alignment);
    });
  }
}

IoThreads::~IoThreads() {
  {
    absl::MutexLock hold(&mutex_);
    is_stopped_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

void IoThreads::ForEach(size_t count, const Work& work) {
  absl::MutexLock hold(&mutex_);
  work_ = &work;
  count_ = count;
  next_ = 0;
  done_ = 0;
  mutex_.Await(absl::Condition(this, &IoThreads::IsDone));
  count_ = 0;
  next_ = 0;
  done_ = 0;
}

void IoThreads::Run(IoQueue& queue, size_t buffer_bytes, size_t alignment) {
  pthread_setname_np(pthread_self(), "tier-io");
  std::vector<Buffer> buffers(queue.depth());
  std::vector<Task> tasks(queue.depth());
  std::vector<size_t> idle;  // tags
  for (size_t tag = 0; tag < queue.depth(); ++tag) {
    buffers[tag] = MakeBuffer(buffer_bytes, alignment);
    idle.push_back(tag);
  }
  while (true) {
    while (!idle.empty()) {
      const std::optional<Task> task = Next(idle.size() == queue.depth());
      if (!task.has_value()) break;
      const size_t tag = idle.back();
      const std::optional<Transfer> transfer =
          task->work->begin(task->index, buffers[tag].get());
      if (!transfer.has_value()) {
        CountDone();
        continue;
      }
      idle.pop_back();
      tasks[tag] = *task;
      queue.Begin(tag, *transfer);
    }
    if (idle.size() == queue.depth()) return;
    {
      const auto [tag, moved] = queue.Await();
      tasks[tag].work->end(tasks[tag].index, buffers[tag].get(), moved);
      idle.push_back(tag);
    }
    // The status must be destroyed before CountDone, because the caller may
    // share it.
    CountDone();
  }
}

std::optional<IoThreads::Task> IoThreads::Next(bool may_wait) {
  absl::MutexLock hold(&mutex_);
  if (may_wait) mutex_.Await(absl::Condition(this, &IoThreads::HasWork));
  if (is_stopped_ || next_ == count_) return std::nullopt;
  return Task{work_, next_++};
}

void IoThreads::CountDone() {
  absl::MutexLock hold(&mutex_);
  ++done_;
}

}  // namespace pando
