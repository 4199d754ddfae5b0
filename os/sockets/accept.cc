#include "os/sockets/accept.h"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

namespace pando {

AcceptResult AcceptFrom(int listening_fd) {
  UniqueFd fd(
      accept4(listening_fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  const bool is_out_of_descriptors =
      !fd.valid() && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
                      errno == ENOMEM);
  return {std::move(fd), is_out_of_descriptors};
}

}  // namespace pando
