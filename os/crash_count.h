#ifndef PANDO_OS_CRASH_COUNT_H_
#define PANDO_OS_CRASH_COUNT_H_

#include <cstdint>

namespace pando {

// From now on, if this process crashes, `count` is one higher when it dies. It
// dies by the signal that it would have died by. Null: nothing is counted.
void CountCrashesIn(uint32_t* count);

}  // namespace pando

#endif  // PANDO_OS_CRASH_COUNT_H_
