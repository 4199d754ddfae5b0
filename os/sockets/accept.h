#ifndef PANDO_OS_SOCKETS_ACCEPT_H_
#define PANDO_OS_SOCKETS_ACCEPT_H_

#include "base/unique_fd.h"

namespace pando {

// The result of AcceptFrom. If `fd` is not valid and is_out_of_descriptors is
// false, no connection is waiting.
struct AcceptResult {
  UniqueFd fd;  // not valid if none was accepted
  // True if a connection is waiting, but no descriptor or memory is free for
  // it.
  bool is_out_of_descriptors = false;
};

// Accepts the next connection of a listening socket. The result is non-blocking
// and close-on-exec.
AcceptResult AcceptFrom(int listening_fd);

}  // namespace pando

#endif  // PANDO_OS_SOCKETS_ACCEPT_H_
