#ifndef PANDO_OS_MEMORY_LIMIT_H_
#define PANDO_OS_MEMORY_LIMIT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace pando {

// Returns how many bytes of memory this process may use: all memory of the
// machine, or less if a control group has a limit.
absl::StatusOr<uint64_t> MemoryLimit();

// Returns how many bytes are free on the machine, or could be without swapping;
// at most MemoryLimit(). Returns UNAVAILABLE if the kernel does not tell.
absl::StatusOr<uint64_t> FreeMemory();

// Returns the least limit, in bytes, of the control groups that `membership`
// names, and of those above them; the largest number if there is no limit. The
// groups are of version 2, or of the memory controller of version 1.
// `membership` is the text of /proc/self/cgroup, and `mount` is the folder of
// the groups.
uint64_t MemoryLimitOfGroups(const std::string& membership,
                             const std::string& mount);

}  // namespace pando

#endif  // PANDO_OS_MEMORY_LIMIT_H_
