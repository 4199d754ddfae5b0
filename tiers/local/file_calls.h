// Read or write exactly `bytes` bytes at `offset` of a file, with plain system
// calls.
#ifndef PANDO_SERVICE_TIERS_FILE_CALLS_H_
#define PANDO_SERVICE_TIERS_FILE_CALLS_H_

#include <sys/types.h>

#include <cstddef>

#include "absl/status/status.h"

namespace pando {

absl::Status ReadAll(int fd, void* to, size_t bytes, off_t offset);
absl::Status WriteAll(int fd, const void* from, size_t bytes, off_t offset);

}  // namespace pando

#endif  // PANDO_SERVICE_TIERS_FILE_CALLS_H_
