#ifndef PANDO_BASE_DEFAULT_SOCKET_H_
#define PANDO_BASE_DEFAULT_SOCKET_H_

#include <string>

#include "absl/status/status.h"

namespace pando {

// Where pandod and its callers meet when no address is given: pando.sock in
//   /run/pando, where this user may write to it or make it; else in
//   $XDG_RUNTIME_DIR/pando (/run/user/UID/pando where that is not set); else in
//   /tmp/pando-UID, which must be this user's alone.
// clients/python/src/pando_kv/_default_address.py has the same rule.

// The path that a pandod of this user listens on.
std::string SocketToServe();

// The path that this user's calls go to: the first of these sockets that the
// user may connect to, else the first that exists, else SocketToServe().
std::string SocketToCall();

// The address in PANDO_ADDRESS, or that of SocketToCall().
std::string DefaultAddress();

// Makes the folder of `path` if `path` is one of these and the folder is not
// there. Fails when it cannot be made, or when the one in /tmp is another
// user's.
absl::Status MakeDefaultSocketFolder(const std::string& path);

}  // namespace pando

#endif  // PANDO_BASE_DEFAULT_SOCKET_H_
