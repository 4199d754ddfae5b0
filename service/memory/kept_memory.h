#ifndef PANDO_SERVICE_MEMORY_KEPT_MEMORY_H_
#define PANDO_SERVICE_MEMORY_KEPT_MEMORY_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "gpu/host_memory.h"
#include "os/keeping/kept_descriptors.h"

namespace pando {

// Returns the memory that is kept under `key`, if pandod made it and it has
// `bytes` bytes; else new memory, which is kept from now on. `name` describes
// the memory in messages.
absl::StatusOr<HostMemory> KeptMemory(KeptDescriptors& kept,
                                      const std::string& key, std::string name,
                                      uint64_t bytes);

}  // namespace pando

#endif  // PANDO_SERVICE_MEMORY_KEPT_MEMORY_H_
