// Lets threads of two processes sleep on a word of shared memory and wake each
// other.
#ifndef PANDO_LANE_FUTEX_H_
#define PANDO_LANE_FUTEX_H_

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <chrono>

#include "lane/layout.h"

namespace pando::lane {

// Sleeps while `word` equals `value`, at most for `limit` by the monotonic
// clock. It may return early without a reason, so the caller must check again.
inline void FutexWait(const SharedWord& word, uint32_t value,
                      std::chrono::nanoseconds limit) {
  if (limit <= std::chrono::nanoseconds::zero()) return;
  const auto seconds = std::chrono::floor<std::chrono::seconds>(limit);
  const timespec time = {.tv_sec = seconds.count(),
                         .tv_nsec = (limit - seconds).count()};
  syscall(SYS_futex, &word, FUTEX_WAIT, value, &time, nullptr, 0);
}

// The number of threads to wake on a slot's `state`, where only the caller of
// that slot sleeps. On Header::answers it is kSlots.
inline constexpr uint32_t kSleepersOnSlot = 1;

// Wakes at most `sleepers` threads that sleep on `word`. The limit is needed
// because each wake-up takes time, and any process that shares the word may let
// any number of threads sleep there.
inline void FutexWake(const SharedWord& word, uint32_t sleepers) {
  syscall(SYS_futex, &word, FUTEX_WAKE, sleepers, nullptr, nullptr, 0);
}

}  // namespace pando::lane

#endif  // PANDO_LANE_FUTEX_H_
