#ifndef PANDO_OS_SOCKETS_UNIX_PEER_H_
#define PANDO_OS_SOCKETS_UNIX_PEER_H_

#include <sys/types.h>

#include <string>

namespace pando {

// The process at the other end of a Unix socket, as the kernel recorded it when
// the connection was made.
struct UnixPeer {
  uid_t uid = 0;
  pid_t pid = 0;  // 0: not visible in this PID namespace

  bool operator==(const UnixPeer&) const = default;
};

// Returns the peer of a connected Unix socket.
UnixPeer UnixPeerOf(int fd);

// Returns the peer's name for the log: "unix:uid=1000,pid=42".
std::string NameOf(const UnixPeer& peer);

}  // namespace pando

#endif  // PANDO_OS_SOCKETS_UNIX_PEER_H_
