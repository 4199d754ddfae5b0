#ifndef PANDO_SERVICE_MEMORY_SHARED_DESCRIPTOR_H_
#define PANDO_SERVICE_MEMORY_SHARED_DESCRIPTOR_H_

#include <cstdint>

#include "base/unique_fd.h"

namespace pando {

// A descriptor of memory on its way to a worker.
struct SharedDescriptor {
  UniqueFd fd;
  uint64_t bytes = 0;  // how many to map; 0: it is not memory
};

}  // namespace pando

#endif  // PANDO_SERVICE_MEMORY_SHARED_DESCRIPTOR_H_
