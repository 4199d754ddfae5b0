#ifndef PANDO_OS_KEEPING_OWNER_LOCK_H_
#define PANDO_OS_KEEPING_OWNER_LOCK_H_

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "os/keeping/kept_descriptors.h"

namespace pando {

// Makes this process the owner of what is kept, until it ends; the kernel
// allows only one owner. The lock is on a file of its own, `owner`, which
// workers never get. The lock lasts as long as the returned descriptor, whose
// open file the keeper does not share: a descriptor that the keeper also holds
// would keep the lock after this process has died.
//
// Descriptors that are kept without `owner` do not come from a pandod, and are
// given up. Without a keeper there is nothing to own, and the returned
// descriptor is not valid. Returns ALREADY_EXISTS if a living process owns what
// is kept; it waits five seconds for that process to end.
absl::StatusOr<UniqueFd> OwnKept(KeptDescriptors& kept);

}  // namespace pando

#endif  // PANDO_OS_KEEPING_OWNER_LOCK_H_
