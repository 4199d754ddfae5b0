#ifndef PANDO_OS_SOCKETS_TCP_PEER_H_
#define PANDO_OS_SOCKETS_TCP_PEER_H_

#include <string>

namespace pando {

// Returns the address of the host at the other end of a TCP connection, or ""
// if the host is gone already.
std::string TcpHostOf(int connection);

}  // namespace pando

#endif  // PANDO_OS_SOCKETS_TCP_PEER_H_
