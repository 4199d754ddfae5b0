#ifndef PANDO_SERVICE_MEMORY_KEPT_MEMORY_H_
#define PANDO_SERVICE_MEMORY_KEPT_MEMORY_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "gpu/host_memory.h"
#include "os/keeping/kept_descriptors.h"

namespace pando {

// The memory that is kept under `key`, if it has so many bytes and is a
// pandod's; else new memory, which is kept from now on. `name` is for people.
absl::StatusOr<HostMemory> KeptMemory(KeptDescriptors& kept,
                                      const std::string& key, std::string name,
                                      uint64_t bytes);

}  // namespace pando

#endif  // PANDO_SERVICE_MEMORY_KEPT_MEMORY_H_
