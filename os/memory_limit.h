#ifndef PANDO_OS_MEMORY_LIMIT_H_
#define PANDO_OS_MEMORY_LIMIT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace pando {

// How many bytes of memory this process may use: those of the machine, or
// fewer where a control group has a limit.
absl::StatusOr<uint64_t> MemoryLimit();

// The part of it that is free on the machine, or could be without swapping.
absl::StatusOr<uint64_t> FreeMemory();

// The least limit of the control groups (version 2, or the memory controller of
// version 1) that `membership` names, and of those above them; the largest
// number if there is none. `membership` is as in /proc/self/cgroup, `mount` is
// where the groups are.
uint64_t MemoryLimitOfGroups(const std::string& membership,
                             const std::string& mount);

}  // namespace pando

#endif  // PANDO_OS_MEMORY_LIMIT_H_
