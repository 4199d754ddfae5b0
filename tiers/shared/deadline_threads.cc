#include "tiers/shared/deadline_threads.h"

#include <pthread.h>

#include <utility>

#include "os/monotonic_clock.h"

namespace pando {

struct DeadlineThreads::Batch {
  size_t left;  // guarded by mutex_
  const absl::Time deadline;
};

DeadlineThreads::DeadlineThreads(size_t threads) {
  for (size_t i = 0; i < threads; ++i) {
    threads_.emplace_back([this] { RunTasks(); });
  }
}

DeadlineThreads::~DeadlineThreads() {
  {
    absl::MutexLock hold(&mutex_);
    is_stopped_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

std::shared_ptr<DeadlineThreads::Batch> DeadlineThreads::Begin(
    std::vector<Work> pieces, absl::Duration timeout) {
  const auto batch = std::make_shared<Batch>(
      Batch{.left = pieces.size(), .deadline = MonotonicNow() + timeout});
  absl::MutexLock hold(&mutex_);
  for (Work& work : pieces) tasks_.push_back({std::move(work), batch});
  return batch;
}

bool DeadlineThreads::End(const std::shared_ptr<Batch>& batch) {
  const auto is_done = +[](Batch* b) { return b->left == 0; };
  absl::MutexLock hold(&mutex_);
  if (mutex_.AwaitWithTimeout(absl::Condition(is_done, batch.get()),
                              batch->deadline - MonotonicNow())) {
    return true;
  }
  std::erase_if(tasks_, [&](const Task& task) { return task.batch == batch; });
  return false;
}

void DeadlineThreads::RunTasks() {
  pthread_setname_np(pthread_self(), "tier-remote");
  while (const std::optional<Task> task = Next()) {
    task->work();
    absl::MutexLock hold(&mutex_);
    --task->batch->left;
  }
}

std::optional<DeadlineThreads::Task> DeadlineThreads::Next() {
  absl::MutexLock hold(&mutex_);
  mutex_.Await(absl::Condition(this, &DeadlineThreads::HasWork));
  if (is_stopped_) return std::nullopt;
  Task task = std::move(tasks_.front());
  tasks_.pop_front();
  return task;
}

}  // namespace pando
