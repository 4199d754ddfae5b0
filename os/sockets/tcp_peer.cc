#include "os/sockets/tcp_peer.h"

#include <netdb.h>
#include <sys/socket.h>

#include <array>

namespace pando {

std::string TcpHostOf(int connection) {
  sockaddr_storage address = {};
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  socklen_t bytes = sizeof(address);
  std::array<char, NI_MAXHOST> host = {};
  if (getpeername(connection, generic, &bytes) != 0 ||
      getnameinfo(generic, bytes, host.data(), host.size(), nullptr, 0,
                  NI_NUMERICHOST) != 0) {
    return "";
  }
  return host.data();
}

}  // namespace pando
