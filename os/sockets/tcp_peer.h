#ifndef PANDO_OS_SOCKETS_TCP_PEER_H_
#define PANDO_OS_SOCKETS_TCP_PEER_H_

#include <string>

namespace pando {

// The address of the host at the other end of a TCP connection; empty: it is
// gone already.
std::string TcpHostOf(int connection);

}  // namespace pando

#endif  // PANDO_OS_SOCKETS_TCP_PEER_H_
