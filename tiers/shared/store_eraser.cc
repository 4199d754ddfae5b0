#include "tiers/shared/store_eraser.h"

#include <pthread.h>

#include <algorithm>
#include <iterator>

#include "os/logging/log.h"

namespace pando {
namespace {

constexpr absl::Duration kTryAgainAfter = absl::Seconds(1);
// Instead of more, everything is erased.
constexpr size_t kMostWaiting = 4'096;

}  // namespace

StoreEraser::StoreEraser(RemoteStore* store)
    : store_(store), thread_([this] { Run(); }) {}

StoreEraser::~StoreEraser() {
  {
    absl::MutexLock hold(&mutex_);
    is_stopped_ = true;
  }
  thread_.join();
}

void StoreEraser::Erase(std::optional<uint64_t> ns_digest) {
  absl::MutexLock hold(&mutex_);
  // The first one may be under way, and have passed new blocks.
  if (!waiting_.empty() &&
      std::find(std::next(waiting_.begin()), waiting_.end(), ns_digest) !=
          waiting_.end()) {
    return;
  }
  if (waiting_.size() >= kMostWaiting) {
    waiting_.resize(1);
    ns_digest = std::nullopt;
  }
  waiting_.push_back(ns_digest);
}

bool StoreEraser::is_erasing() const {
  absl::MutexLock hold(&mutex_);
  return !waiting_.empty();
}

bool StoreEraser::IsErasing(uint64_t ns_digest) const {
  absl::MutexLock hold(&mutex_);
  return std::ranges::any_of(waiting_, [&](const auto& waiting) {
    return !waiting.has_value() || *waiting == ns_digest;
  });
}

void StoreEraser::Run() {
  pthread_setname_np(pthread_self(), "tier-erase");
  bool may_be_left = true;  // an earlier process may have left some
  while (true) {
    {
      absl::MutexLock hold(&mutex_);
      if (!may_be_left) {
        mutex_.Await(absl::Condition(this, &StoreEraser::HasWork));
      }
      if (is_stopped_ && waiting_.empty()) return;
    }
    may_be_left = EraseNext() || store_->FreeSome();
  }
}

// Once the thread is to stop, each erasure is tried once, until one fails.
bool StoreEraser::EraseNext() {
  std::optional<uint64_t> ns_digest;
  {
    absl::MutexLock hold(&mutex_);
    if (waiting_.empty()) return false;
    ns_digest = waiting_.front();
  }
  const bool is_erased = EraseNow(ns_digest);
  absl::MutexLock hold(&mutex_);
  if (is_erased) {
    waiting_.pop_front();
  } else if (is_stopped_) {
    waiting_.clear();
  } else {
    mutex_.AwaitWithTimeout(absl::Condition(&is_stopped_), kTryAgainAfter);
  }
  return true;
}

bool StoreEraser::EraseNow(std::optional<uint64_t> ns_digest) {
  const absl::Status erased = store_->EraseAll(ns_digest);
  if (erased.ok()) return true;
  Log(LogLevel::kError,
      "what was flushed or reset is still in the shared store",
      {{"error", erased.message()}});
  return false;
}

}  // namespace pando
