#include "os/sockets/unix_peer.h"

#include <sys/socket.h>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace pando {

UnixPeer UnixPeerOf(int fd) {
  ucred credentials = {};
  socklen_t size = sizeof(credentials);
  CHECK(getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0);
  return {.uid = credentials.uid, .pid = credentials.pid};
}

std::string NameOf(const UnixPeer& peer) {
  return absl::StrCat("unix:uid=", peer.uid, ",pid=", peer.pid);
}

}  // namespace pando
