#ifndef PANDO_OS_CRASH_COUNT_H_
#define PANDO_OS_CRASH_COUNT_H_

#include <cstdint>

namespace pando {

// From now on, if this process crashes, the signal that ends it first adds one
// to `count`. The process still dies by that signal. `count` must stay mapped
// until another call replaces it. If it is null, crashes are not counted any
// more.
void CountCrashesIn(uint32_t* count);

}  // namespace pando

#endif  // PANDO_OS_CRASH_COUNT_H_
