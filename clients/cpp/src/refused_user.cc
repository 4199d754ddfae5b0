#include "clients/cpp/src/refused_user.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_format.h"
#include "base/unique_fd.h"

namespace pando {
inline namespace client {
namespace {

// An admitted client gets pandod's first bytes within this time.
constexpr int kFirstBytesMs = 100;

std::string WhyDenied(const std::string& path) {
  struct stat file;
  if (stat(path.c_str(), &file) != 0) {
    return absl::StrFormat(
        "user %u may not look into the folder of %s; see --socket and "
        "--socket-group of pandod",
        geteuid(), path);
  }
  return absl::StrFormat(
      "user %u may not connect to %s, whose mode is %04o, user %u and group "
      "%u; see --socket-mode and --socket-group of pandod",
      geteuid(), path, file.st_mode & 07777, file.st_uid, file.st_gid);
}

// pandod closes the connection of a user that is not allowed before it sends
// anything.
bool IsClosedAtOnce(int fd) {
  pollfd polled = {fd, POLLIN, 0};
  char byte = 0;
  return poll(&polled, 1, kFirstBytesMs) == 1 && recv(fd, &byte, 1, 0) <= 0;
}

}  // namespace

std::string WhyUserIsRefused(const std::string& address) {
  std::string path = address;
  if (path.starts_with("unix:")) {
    path.erase(0, std::string("unix:").size());
  } else if (!path.starts_with('/')) {
    return "";
  }
  sockaddr_un socket_address = {.sun_family = AF_UNIX, .sun_path = {}};
  if (path.empty() || path.size() >= sizeof(socket_address.sun_path)) return "";
  path.copy(socket_address.sun_path, path.size());
  const UniqueFd fd(
      socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return "";
  if (connect(fd.get(), reinterpret_cast<sockaddr*>(&socket_address),
              sizeof(socket_address)) != 0) {
    return errno == EACCES ? WhyDenied(path) : "";
  }
  if (!IsClosedAtOnce(fd.get())) return "";
  return absl::StrFormat(
      "pandod closes the connections of user %u to %s; see its --allowed-uids",
      geteuid(), path);
}

}  // namespace client
}  // namespace pando
