#ifndef PANDO_OS_CRASH_COUNT_H_
#define PANDO_OS_CRASH_COUNT_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace pando {

inline constexpr size_t kMaxCrashCounts = 4;

// If this process crashes from now on, each of `counts` goes up by one, once,
// before the process dies. It still dies by the signal that it would have died
// by. At most kMaxCrashCounts are counted; they must stay mapped until another
// call replaces them. If there are none, crashes are not counted any more.
void CountCrashesIn(std::span<uint32_t* const> counts);

}  // namespace pando

#endif  // PANDO_OS_CRASH_COUNT_H_
