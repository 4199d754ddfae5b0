#include "os/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/numbers.h"
#include "base/unique_fd.h"

namespace pando {
namespace {

// The value of a variable as a whole number.
template <typename T>
std::optional<T> NumberIn(const char* variable) {
  const char* const text = std::getenv(variable);
  T number = 0;
  if (text == nullptr || !absl::SimpleAtoi(text, &number)) return std::nullopt;
  return number;
}

}  // namespace

void TellServiceManager(const std::string& assignments) {
  const char* const given = std::getenv("NOTIFY_SOCKET");
  const std::string path = given == nullptr ? "" : given;
  sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = {}};
  if (path.empty() || path.size() >= sizeof(address.sun_path)) return;
  path.copy(address.sun_path, path.size());
  // The name of a socket that is no file begins with a zero byte.
  if (path.front() == '@') address.sun_path[0] = '\0';
  const UniqueFd fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return;
  const size_t size = offsetof(sockaddr_un, sun_path) + path.size();
  sendto(fd.get(), assignments.data(), assignments.size(), MSG_NOSIGNAL,
         reinterpret_cast<const sockaddr*>(&address),
         static_cast<socklen_t>(size));
}

std::optional<absl::Duration> WatchdogTime() {
  const auto process = NumberIn<pid_t>("WATCHDOG_PID");
  if (process.has_value() && *process != getpid()) return std::nullopt;
  const auto microseconds = NumberIn<int64_t>("WATCHDOG_USEC");
  if (!microseconds.has_value() || *microseconds <= 0) return std::nullopt;
  return absl::Microseconds(*microseconds);
}

}  // namespace pando
