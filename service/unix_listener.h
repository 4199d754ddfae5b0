#ifndef PANDO_SERVICE_UNIX_LISTENER_H_
#define PANDO_SERVICE_UNIX_LISTENER_H_

#include <sys/types.h>

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "gpu/unique_fd.h"

namespace pando {

// A Unix socket to serve on, and who may connect to it.
struct UnixSocket {
  std::string path;
  mode_t mode = 0660;
  // The group of the file; none: that of this process.
  std::optional<gid_t> group = {};
};

// A listening, non-blocking stream socket. Takes the place of one whose server
// is gone; an error if a server answers there, or if what is there is no
// socket: it is then left alone. Whoever listens removes the file in the end.
absl::StatusOr<UniqueFd> ListenOnUnixSocket(const UnixSocket& socket);

struct AcceptResult {
  UniqueFd fd;  // not valid: nobody waits
  // Somebody waits, and must until descriptors are free again.
  bool is_out_of_descriptors = false;
};

// The next connection, non-blocking too.
AcceptResult AcceptConnection(int listener);

}  // namespace pando

#endif  // PANDO_SERVICE_UNIX_LISTENER_H_
