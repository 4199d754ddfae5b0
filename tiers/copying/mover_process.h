#ifndef PANDO_TIERS_COPYING_MOVER_PROCESS_H_
#define PANDO_TIERS_COPYING_MOVER_PROCESS_H_

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "os/sockets/unix_peer.h"

namespace pando {

// Returns a descriptor that becomes readable when the process at the other end
// of a Unix socket has ended and the kernel has released all its resources;
// nothing that it told a device to do goes on then. The descriptor is not valid
// if the process cannot be watched, because it lives in another PID namespace
// and the kernel is older than 6.5.
absl::StatusOr<UniqueFd> MoverProcessOf(int socket, const UnixPeer& peer);

}  // namespace pando

#endif  // PANDO_TIERS_COPYING_MOVER_PROCESS_H_
