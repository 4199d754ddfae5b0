#include "os/sockets/unix_listener.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "os/logging/log.h"

namespace pando {
namespace {

// The most connections that wait to be accepted. A caller that floods the
// socket makes others wait behind so many.
constexpr int kBacklog = 128;

constexpr int kLockTries = 500;
constexpr std::chrono::milliseconds kLockPause{10};

absl::Status Error(const char* what, const std::string& path) {
  return absl::ErrnoToStatus(errno, absl::StrFormat("%s %s", what, path));
}

absl::Status NoFolderFor(const std::string& path) {
  return absl::NotFoundError(absl::StrFormat(
      "cannot bind %s: the folder %s does not exist; make it, or choose "
      "another with --socket and --memory-socket",
      path, std::filesystem::path(path).parent_path().string()));
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

// Locks the folder of a socket, until the returned descriptor is closed. Two
// servers that start at once must not both find that no server listens: one
// would remove the socket that the other has bound meanwhile. So each looks,
// binds and listens while it holds the lock.
absl::StatusOr<UniqueFd> LockFolderOf(const std::string& path) {
  const std::filesystem::path folder =
      std::filesystem::absolute(path).parent_path();
  UniqueFd fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) {
    return errno == ENOENT ? NoFolderFor(path) : Error("cannot bind", path);
  }
  for (int i = 0; i < kLockTries; ++i) {
    if (flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
    std::this_thread::sleep_for(kLockPause);
  }
  return absl::AlreadyExistsError(absl::StrFormat(
      "cannot bind %s: another process keeps the folder %s locked", path,
      folder.string()));
}

UniqueFd MakeSocket() {
  return UniqueFd(
      socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

// Removes a socket file at `path` whose server is gone. Returns an error, and
// leaves the file, if a server answers there or the file is no socket.
absl::Status RemoveStaleSocket(const std::string& path) {
  ASSIGN_OR_RETURN(sockaddr_un address, MakeAddress(path));
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
  // EAGAIN: a server listens, with a full backlog.
  if (connect(probe.get(), reinterpret_cast<sockaddr*>(&address),
              sizeof(address)) == 0 ||
      errno == EAGAIN) {
    return absl::AlreadyExistsError(
        absl::StrFormat("another server listens on %s", path));
  }
  if (errno != ECONNREFUSED) return Error("cannot probe", path);
  if (unlink(path.c_str()) != 0) return Error("cannot remove", path);
  return absl::OkStatus();
}

int OptionOf(const UniqueFd& fd, int option) {
  int value = -1;
  socklen_t size = sizeof(value);
  getsockopt(fd.get(), SOL_SOCKET, option, &value, &size);
  return value;
}

// Returns OK if a caller who connects to the path reaches this socket.
absl::Status CheckListensAt(const UniqueFd& fd, const std::string& path) {
  if (OptionOf(fd, SO_DOMAIN) != AF_UNIX ||
      OptionOf(fd, SO_TYPE) != SOCK_STREAM ||
      OptionOf(fd, SO_ACCEPTCONN) != 1) {
    return absl::FailedPreconditionError("it is no listening Unix socket");
  }
  sockaddr_un address = {};
  socklen_t size = sizeof(address) - 1;
  getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size);
  if (path != address.sun_path) {
    return absl::FailedPreconditionError(
        absl::StrFormat("it listens on '%s'", address.sun_path));
  }
  struct stat info;
  if (lstat(path.c_str(), &info) != 0 || !S_ISSOCK(info.st_mode)) {
    return absl::FailedPreconditionError("its file is gone");
  }
  // The file may be another socket's. A caller who connects is told which
  // process has called listen last, so we call listen and connect.
  const UniqueFd probe = MakeSocket();
  if (!probe.valid() || listen(fd.get(), kBacklog) != 0) {
    return Error("cannot probe", path);
  }
  if (connect(probe.get(), reinterpret_cast<sockaddr*>(&address),
              sizeof(address)) != 0) {
    // EAGAIN: the backlog is full, so the server lives.
    return errno == EAGAIN ? absl::OkStatus()
                           : Error("cannot connect to", path);
  }
  ucred server = {};
  size = sizeof(server);
  getsockopt(probe.get(), SOL_SOCKET, SO_PEERCRED, &server, &size);
  if (server.pid != getpid()) {
    return absl::FailedPreconditionError("another socket has taken its place");
  }
  return absl::OkStatus();
}

// Returns the kept socket, or an invalid descriptor if none is kept that fits.
UniqueFd TakeKept(const UnixSocket& socket) {
  if (socket.kept == nullptr) return UniqueFd();
  UniqueFd fd = socket.kept->Take(socket.kept_name);
  if (!fd.valid()) return fd;
  const absl::Status fits = CheckListensAt(fd, socket.path);
  if (fits.ok() && fcntl(fd.get(), F_SETFL, O_NONBLOCK) == 0) return fd;
  Log(LogLevel::kWarning, "a kept socket is not used: another one is made",
      {{"name", socket.kept_name},
       {"socket", socket.path},
       {"reason", fits.message()}});
  return UniqueFd();
}

// Returns the group of a file that this process makes in the folder.
gid_t GroupOfNewFileIn(const UniqueFd& folder) {
  struct stat info;
  const bool gives = fstat(folder.get(), &info) == 0 && info.st_mode & S_ISGID;
  return gives ? info.st_gid : getegid();
}

absl::StatusOr<UniqueFd> BindTo(const std::string& path) {
  RETURN_IF_ERROR(RemoveStaleSocket(path));
  absl::StatusOr<sockaddr_un> address = MakeAddress(path);
  UniqueFd fd = MakeSocket();
  if (!fd.valid()) return Error("cannot make a socket for", path);
  if (bind(fd.get(), reinterpret_cast<sockaddr*>(&*address),
           sizeof(*address)) != 0) {
    return errno == ENOENT ? NoFolderFor(path) : Error("cannot bind", path);
  }
  return fd;
}

}  // namespace

absl::StatusOr<std::unique_ptr<UnixListener>> UnixListener::Start(
    const UnixSocket& socket) {
  const std::string& path = socket.path;
  ASSIGN_OR_RETURN(const UniqueFd folder, LockFolderOf(path));
  UniqueFd fd = TakeKept(socket);
  const bool is_new = !fd.valid();
  if (is_new) {
    ASSIGN_OR_RETURN(fd, BindTo(path));
  }
  auto listener = absl::WrapUnique(new UnixListener(path, std::move(fd)));
  std::optional<gid_t> group = socket.group;
  // A kept socket may have the group of an option that is not given any more.
  if (!is_new && !group.has_value()) group = GroupOfNewFileIn(folder);
  // No process can connect before the socket listens, whatever its mode is
  // until then. A user who may write to the folder may have put a link there,
  // so links are not followed. If the socket is a kept one, which listens
  // already, callers see this process as its server from now on.
  constexpr uid_t kAsItIs = static_cast<uid_t>(-1);
  if ((group.has_value() && lchown(path.c_str(), kAsItIs, *group) != 0) ||
      fchmodat(AT_FDCWD, path.c_str(), socket.mode, AT_SYMLINK_NOFOLLOW) != 0 ||
      listen(listener->fd(), kBacklog) != 0) {
    return Error("cannot listen on", path);
  }
  if (is_new && socket.kept != nullptr) {
    socket.kept->Keep(socket.kept_name, listener->fd_);
  }
  return listener;
}

UnixListener::~UnixListener() {
  if (file_.has_value() && FileAt(path_) == file_) unlink(path_.c_str());
}

std::optional<UnixListener::FileId> UnixListener::FileAt(
    const std::string& path) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) return std::nullopt;
  return FileId(info.st_dev, info.st_ino);
}

}  // namespace pando
