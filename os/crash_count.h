#ifndef PANDO_OS_CRASH_COUNT_H_
#define PANDO_OS_CRASH_COUNT_H_

#include <cstdint>

namespace pando {

// If this process crashes from now on, `count` goes up by one, once, before the
// process dies. It still dies by the signal that it would have died by. `count`
// must stay mapped until another call replaces it. If it is null, crashes are
// not counted any more.
void CountCrashesIn(uint32_t* count);

}  // namespace pando

#endif  // PANDO_OS_CRASH_COUNT_H_
