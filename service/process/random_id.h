#ifndef PANDO_SERVICE_PROCESS_RANDOM_ID_H_
#define PANDO_SERVICE_PROCESS_RANDOM_ID_H_

#include <cstdint>

namespace pando {

// A number from the kernel's random source, not 0: nobody can guess it.
uint64_t RandomId();

}  // namespace pando

#endif  // PANDO_SERVICE_PROCESS_RANDOM_ID_H_
