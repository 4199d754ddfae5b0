#include "os/sockets/tcp_listener.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "absl/cleanup/cleanup.h"
#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"

namespace pando {
namespace {

// A host that is silent so long is asked whether it is there, and given up when
// it does not answer, or when what was sent to it is not acknowledged.
constexpr int kIdleSeconds = 10;
constexpr int kProbeSeconds = 2;
constexpr int kProbes = 3;
constexpr int kUnacknowledgedMs = 15'000;

struct HostAndPort {
  std::string host;
  std::string port;
};

// "[::1]:80" has the host "::1".
HostAndPort Split(const std::string& address) {
  const size_t colon = address.rfind(':');
  absl::string_view host(address.data(), colon);
  if (absl::ConsumePrefix(&host, "[")) absl::ConsumeSuffix(&host, "]");
  return {std::string(host), address.substr(colon + 1)};
}

absl::Status Error(const std::string& address) {
  return absl::UnavailableError(
      absl::StrCat("cannot listen on ", address, ": ", std::strerror(errno)));
}

// Sets what connections inherit from the listener.
bool SetOptions(int fd) {
  const auto set = [fd](int level, int option, int value) {
    return setsockopt(fd, level, option, &value, sizeof(value)) == 0;
  };
  // After a restart, while connections of before are in TIME_WAIT.
  return set(SOL_SOCKET, SO_REUSEADDR, 1) && set(IPPROTO_TCP, TCP_NODELAY, 1) &&
         set(SOL_SOCKET, SO_KEEPALIVE, 1) &&
         set(IPPROTO_TCP, TCP_KEEPIDLE, kIdleSeconds) &&
         set(IPPROTO_TCP, TCP_KEEPINTVL, kProbeSeconds) &&
         set(IPPROTO_TCP, TCP_KEEPCNT, kProbes) &&
         set(IPPROTO_TCP, TCP_USER_TIMEOUT, kUnacknowledgedMs);
}

absl::StatusOr<UniqueFd> Listen(const addrinfo& at,
                                const std::string& address) {
  UniqueFd fd(socket(at.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
                     IPPROTO_TCP));
  if (!fd.valid() || !SetOptions(fd.get()) ||
      bind(fd.get(), at.ai_addr, at.ai_addrlen) != 0 ||
      listen(fd.get(), SOMAXCONN) != 0) {
    return Error(address);
  }
  return fd;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TcpListener>> TcpListener::Start(
    const std::string& address) {
  const auto [host, port] = Split(address);
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int failed = getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
  if (failed != 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", address, ": ", gai_strerror(failed)));
  }
  const absl::Cleanup free_found = [found] { freeaddrinfo(found); };
  std::vector<UniqueFd> sockets;
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    absl::StatusOr<UniqueFd> socket = Listen(*at, address);
    // A name may stand for an address of a family that this machine lacks.
    const bool is_last = at->ai_next == nullptr;
    if (!socket.ok() && (!is_last || !sockets.empty()) &&
        (errno == EADDRNOTAVAIL || errno == EAFNOSUPPORT)) {
      continue;
    }
    RETURN_IF_ERROR(socket.status());
    sockets.push_back(*std::move(socket));
  }
  return absl::WrapUnique(new TcpListener(std::move(sockets)));
}

}  // namespace pando
