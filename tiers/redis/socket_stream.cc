#include "tiers/redis/socket_stream.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "os/monotonic_clock.h"

namespace pando {
namespace {

// One call of sendmsg takes at most so many parts (IOV_MAX).
constexpr size_t kMaxPartsPerWrite = 1024;

absl::Status LostBy(const char* what) {
  return absl::UnavailableError(
      absl::StrCat("the shared store: ", what, ": ", std::strerror(errno)));
}

absl::Status TooSlow() {
  return absl::DeadlineExceededError("the shared store is slow");
}

absl::StatusOr<UniqueFd> ConnectSocket(const sockaddr* address,
                                       socklen_t length, absl::Time deadline) {
  UniqueFd fd(socket(address->sa_family,
                     SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return LostBy("make a socket");
  if (connect(fd.get(), address, length) != 0) {
    if (errno != EINPROGRESS) return LostBy("connect");
    RETURN_IF_ERROR(AwaitSocket(fd.get(), POLLOUT, deadline));
    int error = 0;
    socklen_t size = sizeof(error);
    if (getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) {
      return LostBy("connect");
    }
    if (error != 0) {
      errno = error;
      return LostBy("connect");
    }
  }
  if (address->sa_family != AF_UNIX) {
    const int on = 1;
    setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    // A close drops bytes that wait to be sent, because those that were given
    // up must not arrive after a flush.
    const linger reset = {.l_onoff = 1, .l_linger = 0};
    setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
  }
  return fd;
}

absl::StatusOr<UniqueFd> ConnectToPath(const std::string& path,
                                       absl::Time deadline) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the path of a socket has ", path.size(),
                     " bytes; must have less than ", sizeof(address.sun_path)));
  }
  path.copy(address.sun_path, path.size());
  return ConnectSocket(reinterpret_cast<const sockaddr*>(&address),
                       sizeof(address), deadline);
}

}  // namespace

absl::Status AwaitSocket(int fd, short events, absl::Time deadline) {
  while (true) {
    const absl::Duration left = deadline - MonotonicNow();
    if (left <= absl::ZeroDuration()) return TooSlow();
    const timespec timeout = absl::ToTimespec(left);
    pollfd poll = {.fd = fd, .events = events, .revents = 0};
    const int ready = ppoll(&poll, 1, &timeout, nullptr);
    if (ready > 0) return absl::OkStatus();
    if (ready < 0 && errno != EINTR) return LostBy("wait");
  }
}

absl::Time HalfwayTo(absl::Time deadline) {
  const absl::Time now = MonotonicNow();
  return now + (deadline - now) / 2;
}

bool IsSocketQuiet(int fd) {
  pollfd poll = {.fd = fd, .events = POLLIN | POLLRDHUP, .revents = 0};
  return ::poll(&poll, 1, 0) == 0;
}

absl::StatusOr<UniqueFd> ConnectTo(const RedisAddress& address,
                                   absl::Time deadline) {
  if (address.host.starts_with('/')) {
    return ConnectToPath(address.host, deadline);
  }
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(
      address.host.c_str(), absl::StrCat(address.port).c_str(), &hints, &found);
  if (error != 0) {
    return absl::UnavailableError(absl::StrCat(
        "look up the host ", address.host, ": ", gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> addresses(
      found, &freeaddrinfo);
  // An address that does not answer must leave time for the next one.
  absl::Status status;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    absl::StatusOr<UniqueFd> fd =
        ConnectSocket(one->ai_addr, one->ai_addrlen,
                      one->ai_next == nullptr ? deadline : HalfwayTo(deadline));
    if (fd.ok()) return fd;
    status = fd.status();
  }
  return status;
}

absl::StatusOr<size_t> SocketStream::Read(std::span<std::byte> into,
                                          absl::Time deadline) {
  while (true) {
    // The deadline is checked before each read, so that a server that sends
    // without end does not keep this thread.
    if (MonotonicNow() >= deadline) return TooSlow();
    const ssize_t bytes = recv(fd_.get(), into.data(), into.size(), 0);
    if (bytes > 0) return static_cast<size_t>(bytes);
    if (bytes == 0) {
      return absl::UnavailableError("the shared store closed a connection");
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return LostBy("read");
    RETURN_IF_ERROR(AwaitSocket(fd_.get(), POLLIN, deadline));
  }
}

absl::Status SocketStream::Write(std::vector<iovec> parts,
                                 absl::Time deadline) {
  size_t first = 0;
  while (first < parts.size()) {
    msghdr message = {};
    message.msg_iov = parts.data() + first;
    message.msg_iovlen = std::min(parts.size() - first, kMaxPartsPerWrite);
    const ssize_t bytes = sendmsg(fd_.get(), &message, MSG_NOSIGNAL);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0 && errno != EAGAIN) return LostBy("write");
    if (bytes < 0) {
      RETURN_IF_ERROR(AwaitSocket(fd_.get(), POLLOUT, deadline));
      continue;
    }
    size_t written = static_cast<size_t>(bytes);
    while (first < parts.size() && written >= parts[first].iov_len) {
      written -= parts[first++].iov_len;
    }
    if (written == 0) continue;
    iovec& part = parts[first];
    part.iov_base = static_cast<std::byte*>(part.iov_base) + written;
    part.iov_len -= written;
  }
  return absl::OkStatus();
}

}  // namespace pando
