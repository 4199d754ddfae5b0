#include "tiers/copying/mover_process.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "absl/status/status.h"

namespace pando {
namespace {

// Since Linux 6.5; the headers of Debian 12 are older.
constexpr int kPeerPidfd = 77;

}  // namespace

absl::StatusOr<UniqueFd> MoverProcessOf(int socket, const UnixPeer& peer) {
  int pidfd = -1;
  socklen_t size = sizeof(pidfd);
  if (getsockopt(socket, SOL_SOCKET, kPeerPidfd, &pidfd, &size) == 0) {
    return UniqueFd(pidfd);
  }
  if (errno != ENOPROTOOPT) {
    return absl::ErrnoToStatus(errno, "SO_PEERPIDFD");
  }
  if (peer.pid == 0) return UniqueFd();
  pidfd = static_cast<int>(syscall(SYS_pidfd_open, peer.pid, 0));
  if (pidfd < 0) return absl::ErrnoToStatus(errno, "pidfd_open");
  return UniqueFd(pidfd);
}

}  // namespace pando
