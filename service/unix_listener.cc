#include "service/unix_listener.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_format.h"

namespace pando {
namespace {

// Who floods a socket with connections makes others wait behind so many.
constexpr int kBacklog = 128;

absl::Status Error(const char* what, const std::string& path) {
  return absl::ErrnoToStatus(errno, absl::StrFormat("%s %s", what, path));
}

absl::StatusOr<sockaddr_un> MakeAddress(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("socket path '%s' has %u bytes; must have from 1 to %u",
                        path, path.size(), sizeof(address.sun_path) - 1));
  }
  path.copy(address.sun_path, path.size());
  return address;
}

UniqueFd MakeSocket() {
  return UniqueFd(
      socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

// Makes way for a socket at path.
absl::Status RemoveStaleSocket(const std::string& path) {
  absl::StatusOr<sockaddr_un> address = MakeAddress(path);
  if (!address.ok()) return address.status();
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) {
    return errno == ENOENT ? absl::OkStatus() : Error("cannot inspect", path);
  }
  if (!S_ISSOCK(info.st_mode)) {
    return absl::AlreadyExistsError(
        absl::StrFormat("%s exists and is not a socket", path));
  }
  const UniqueFd probe = MakeSocket();
  if (!probe.valid()) return Error("cannot make a socket for", path);
  // EAGAIN: somebody listens, with a full backlog.
  if (connect(probe.get(), reinterpret_cast<sockaddr*>(&*address),
              sizeof(*address)) == 0 ||
      errno == EAGAIN) {
    return absl::AlreadyExistsError(
        absl::StrFormat("another server listens on %s", path));
  }
  if (errno != ECONNREFUSED) return Error("cannot probe", path);
  if (unlink(path.c_str()) != 0) return Error("cannot remove", path);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<UniqueFd> ListenOnUnixSocket(const UnixSocket& socket) {
  const std::string& path = socket.path;
  absl::Status clear = RemoveStaleSocket(path);
  if (!clear.ok()) return clear;
  absl::StatusOr<sockaddr_un> address = MakeAddress(path);
  UniqueFd listener = MakeSocket();
  if (!listener.valid()) return Error("cannot make a socket for", path);
  if (bind(listener.get(), reinterpret_cast<sockaddr*>(&*address),
           sizeof(*address)) != 0) {
    return Error("cannot bind", path);
  }
  // Nobody can connect before it listens, whatever the mode is until then.
  constexpr uid_t kAsItIs = static_cast<uid_t>(-1);
  if ((socket.group.has_value() &&
       chown(path.c_str(), kAsItIs, *socket.group) != 0) ||
      chmod(path.c_str(), socket.mode) != 0 ||
      listen(listener.get(), kBacklog) != 0) {
    absl::Status status = Error("cannot listen on", path);
    unlink(path.c_str());
    return status;
  }
  return listener;
}

AcceptResult AcceptConnection(int listener) {
  UniqueFd fd(
      accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  const bool is_out_of_descriptors =
      !fd.valid() && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
                      errno == ENOMEM);
  return {std::move(fd), is_out_of_descriptors};
}

}  // namespace pando
