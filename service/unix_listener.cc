#include "service/unix_listener.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_format.h"

namespace pando {
namespace {

constexpr mode_t kSocketMode = 0660;
constexpr int kBacklog = 64;

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

}  // namespace

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

absl::StatusOr<UniqueFd> ListenOnUnixSocket(const std::string& path) {
  absl::Status clear = RemoveStaleSocket(path);
  if (!clear.ok()) return clear;
  absl::StatusOr<sockaddr_un> address = MakeAddress(path);
  UniqueFd listener = MakeSocket();
  if (!listener.valid()) return Error("cannot make a socket for", path);
  // Before bind: the file is at no moment open to more than this. After it:
  // the umask may have taken the group's access away.
  if (fchmod(listener.get(), kSocketMode) != 0 ||
      bind(listener.get(), reinterpret_cast<sockaddr*>(&*address),
           sizeof(*address)) != 0) {
    return Error("cannot bind", path);
  }
  if (chmod(path.c_str(), kSocketMode) != 0 ||
      listen(listener.get(), kBacklog) != 0) {
    absl::Status status = Error("cannot listen on", path);
    unlink(path.c_str());
    return status;
  }
  return listener;
}

}  // namespace pando
