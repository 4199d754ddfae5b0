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

// The path to which this user's clients connect: the first of these sockets
// that the user may connect to, else the first that exists, else
// SocketToServe().
std::string SocketToCall();

// The address in the environment variable PANDO_ADDRESS if that is set, else
// "unix:" and SocketToCall().
std::string DefaultAddress();

// If `path` is one of these sockets, makes its folder unless that exists. Fails
// if the folder cannot be made; FAILED_PRECONDITION if the one in /tmp is not
// this user's alone.
absl::Status MakeDefaultSocketFolder(const std::string& path);

}  // namespace pando

#endif  // PANDO_BASE_DEFAULT_SOCKET_H_
