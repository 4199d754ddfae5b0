#ifndef PANDO_OS_RANDOM_ID_H_
#define PANDO_OS_RANDOM_ID_H_

#include <cstdint>

namespace pando {

// Returns a number from the kernel's random source, which cannot be guessed. It
// is never 0.
uint64_t RandomId();

}  // namespace pando

#endif  // PANDO_OS_RANDOM_ID_H_
