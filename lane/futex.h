// Sleeping on a word of shared memory.
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
// clock. May return early for no reason, so the caller must check again.
inline void FutexWait(const SharedWord& word, uint32_t value,
                      std::chrono::nanoseconds limit) {
  if (limit <= std::chrono::nanoseconds::zero()) return;
  const auto seconds = std::chrono::floor<std::chrono::seconds>(limit);
  const timespec time = {.tv_sec = seconds.count(),
                         .tv_nsec = (limit - seconds).count()};
  syscall(SYS_futex, &word, FUTEX_WAIT, value, &time, nullptr, 0);
}

// Who may sleep on the state of a slot: its caller. On `answers`: kSlots.
inline constexpr uint32_t kSleepersOnSlot = 1;

// Wakes at most so many of those who sleep on `word`: waking takes time for
// each, and a process that shares the word may have put any number there.
inline void FutexWake(const SharedWord& word, uint32_t sleepers) {
  syscall(SYS_futex, &word, FUTEX_WAKE, sleepers, nullptr, nullptr, 0);
}

}  // namespace pando::lane

#endif  // PANDO_LANE_FUTEX_H_
