#ifndef PANDO_SERVICE_UNIX_LISTENER_H_
#define PANDO_SERVICE_UNIX_LISTENER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gpu/unique_fd.h"

namespace pando {

// Makes way for a Unix socket at path: removes the socket file of a server
// that is gone. An error if a server answers there, or if what is there is no
// socket; it is then left alone.
absl::Status RemoveStaleSocket(const std::string& path);

// A listening, non-blocking stream socket at path that only user and group of
// this process may connect to. Whoever listens removes the file in the end.
absl::StatusOr<UniqueFd> ListenOnUnixSocket(const std::string& path);

}  // namespace pando

#endif  // PANDO_SERVICE_UNIX_LISTENER_H_
