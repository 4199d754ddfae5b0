#ifndef PANDO_OS_FAIR_MUTEX_H_
#define PANDO_OS_FAIR_MUTEX_H_

#include <atomic>
#include <cstdint>

#include "absl/base/thread_annotations.h"

namespace pando {

// A mutex that threads get in the order in which they asked for it. With an
// absl::Mutex, a thread that unlocks it and locks it again at once nearly
// always gets it before a thread that has to wake up first. So a thread of many
// short holds would keep all others out for tens of milliseconds. A FairMutex
// hands each hold over.
//
// It is made for few threads, because each hand-over wakes all threads that
// wait.
class ABSL_LOCKABLE FairMutex {
 public:
  FairMutex() = default;
  FairMutex(const FairMutex&) = delete;
  FairMutex& operator=(const FairMutex&) = delete;

  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() {
    const uint32_t ticket = asked_.fetch_add(1);
    for (uint32_t served = served_.load(); served != ticket;
         served = served_.load()) {
      served_.wait(served);
    }
  }

  void Unlock() ABSL_UNLOCK_FUNCTION() {
    const uint32_t next = served_.fetch_add(1) + 1;
    // Either this thread sees that another one has asked, or that thread sees
    // that it is its turn.
    if (asked_.load() != next) served_.notify_all();
  }

  // Returns how many threads hold the mutex or wait for it.
  uint32_t threads() const { return asked_.load() - served_.load(); }

 private:
  std::atomic<uint32_t> asked_ = 0;  // the ticket of the next thread that asks
  std::atomic<uint32_t> served_ =
      0;  // the ticket of the holder, or of the next
};

// Holds a FairMutex.
class ABSL_SCOPED_LOCKABLE FairMutexLock {
 public:
  explicit FairMutexLock(FairMutex* mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex)
      : mutex_(mutex) {
    mutex_->Lock();
  }
  ~FairMutexLock() ABSL_UNLOCK_FUNCTION() { mutex_->Unlock(); }
  FairMutexLock(const FairMutexLock&) = delete;
  FairMutexLock& operator=(const FairMutexLock&) = delete;

 private:
  FairMutex* const mutex_;
};

// Gives a FairMutex back for its own lifetime, and then takes it again.
// REQUIRES: the thread holds the mutex, and no code on its stack relies on
// other threads changing nothing meanwhile.
class FairMutexPause {
 public:
  explicit FairMutexPause(FairMutex* mutex) ABSL_NO_THREAD_SAFETY_ANALYSIS
      : mutex_(mutex) {
    mutex_->Unlock();
  }
  ~FairMutexPause() ABSL_NO_THREAD_SAFETY_ANALYSIS { mutex_->Lock(); }
  FairMutexPause(const FairMutexPause&) = delete;
  FairMutexPause& operator=(const FairMutexPause&) = delete;

 private:
  FairMutex* const mutex_;
};

}  // namespace pando

#endif  // PANDO_OS_FAIR_MUTEX_H_
