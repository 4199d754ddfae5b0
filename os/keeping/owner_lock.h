#ifndef PANDO_OS_KEEPING_OWNER_LOCK_H_
#define PANDO_OS_KEEPING_OWNER_LOCK_H_

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "os/keeping/kept_descriptors.h"

namespace pando {

// Makes this process the owner of what is kept, until it ends: the kernel lets
// no second one be. The lock is on a file of its own, `owner`, which workers
// never get. It goes with the returned descriptor, which is opened anew: the
// one that the keeper holds, too, would keep the lock beyond our death.
//
// Descriptors that are kept without an owner are no pandod's, and are
// forgotten. Without a keeper there is nothing to own, and the descriptor is
// not valid. ALREADY_EXISTS: a process that lives owns it.
absl::StatusOr<UniqueFd> OwnKept(KeptDescriptors& kept);

}  // namespace pando

#endif  // PANDO_OS_KEEPING_OWNER_LOCK_H_
