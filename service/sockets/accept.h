#ifndef PANDO_SERVICE_SOCKETS_ACCEPT_H_
#define PANDO_SERVICE_SOCKETS_ACCEPT_H_

#include "base/unique_fd.h"

namespace pando {

struct AcceptResult {
  UniqueFd fd;  // not valid: nobody waits
  // Somebody waits, and must until descriptors are free again.
  bool is_out_of_descriptors = false;
};

// The next connection of a listening socket, non-blocking and close-on-exec.
AcceptResult AcceptFrom(int listening_fd);

}  // namespace pando

#endif  // PANDO_SERVICE_SOCKETS_ACCEPT_H_
