#include "service/tiers/io_threads.h"

#include <pthread.h>

#include <cstdlib>

#include "base/check.h"

namespace pando {
namespace {

struct FreeBuffer {
  void operator()(std::byte* buffer) const { std::free(buffer); }
};

}  // namespace

IoThreads::IoThreads(size_t threads, size_t buffer_bytes, size_t alignment) {
  for (size_t i = 0; i < threads; ++i) {
    threads_.emplace_back([=, this] { Run(buffer_bytes, alignment); });
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

void IoThreads::Run(size_t buffer_bytes, size_t alignment) {
  pthread_setname_np(pthread_self(), "tier-io");
  const std::unique_ptr<std::byte, FreeBuffer> buffer(
      static_cast<std::byte*>(std::aligned_alloc(alignment, buffer_bytes)));
  CHECK(buffer != nullptr);
  while (const std::optional<Task> task = Next()) {
    (*task->work)(task->index, buffer.get());
    absl::MutexLock hold(&mutex_);
    ++done_;
  }
}

std::optional<IoThreads::Task> IoThreads::Next() {
  absl::MutexLock hold(&mutex_);
  mutex_.Await(absl::Condition(this, &IoThreads::HasWork));
  if (is_stopped_) return std::nullopt;
  return Task{work_, next_++};
}

}  // namespace pando
