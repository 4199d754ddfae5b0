#include "os/service_manager.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "absl/strings/numbers.h"
#include "base/unique_fd.h"

namespace pando {
namespace {

// How long to wait for a manager whose queue of messages is full.
constexpr timeval kPatience = {.tv_sec = 5, .tv_usec = 0};

// Returns the value of an environment variable as a whole number, or none.
template <typename T>
std::optional<T> NumberIn(const char* variable) {
  const char* const text = std::getenv(variable);
  T number = 0;
  if (text == nullptr || !absl::SimpleAtoi(text, &number)) return std::nullopt;
  return number;
}

}  // namespace

bool HasServiceManager() { return std::getenv("NOTIFY_SOCKET") != nullptr; }

bool TellServiceManager(const std::string& assignments, int descriptor) {
  const char* const given = std::getenv("NOTIFY_SOCKET");
  const std::string path = given == nullptr ? "" : given;
  sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = {}};
  if (path.empty() || path.size() >= sizeof(address.sun_path)) return true;
  path.copy(address.sun_path, path.size());
  // The name of a socket that is no file begins with a zero byte.
  if (path.front() == '@') address.sun_path[0] = '\0';
  const UniqueFd fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return true;
  setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof(kPatience));
  const size_t size = offsetof(sockaddr_un, sun_path) + path.size();
  iovec body = {const_cast<char*>(assignments.data()), assignments.size()};
  msghdr message = {};
  message.msg_name = &address;
  message.msg_namelen = static_cast<socklen_t>(size);
  message.msg_iov = &body;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(descriptor))];
  if (descriptor >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    cmsghdr* const rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(descriptor));
    std::memcpy(CMSG_DATA(rights), &descriptor, sizeof(descriptor));
  }
  return sendmsg(fd.get(), &message, MSG_NOSIGNAL) >= 0 || errno != EAGAIN;
}

std::optional<absl::Duration> WatchdogTime() {
  const auto process = NumberIn<pid_t>("WATCHDOG_PID");
  if (process.has_value() && *process != getpid()) return std::nullopt;
  const auto microseconds = NumberIn<int64_t>("WATCHDOG_USEC");
  if (!microseconds.has_value() || *microseconds <= 0) return std::nullopt;
  return absl::Microseconds(*microseconds);
}

}  // namespace pando
