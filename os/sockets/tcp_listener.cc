#include "os/sockets/tcp_listener.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "os/logging/log.h"

namespace pando {
namespace {

// A host that is silent for kIdleSeconds is asked whether it is there. It is
// given up when it does not answer, or when it does not acknowledge what was
// sent to it.
constexpr int kIdleSeconds = 10;
constexpr int kProbeSeconds = 2;
constexpr int kProbes = 3;
constexpr int kUnacknowledgedMs = 15'000;

struct HostAndPort {
  std::string host;
  std::string port;
};

// Splits host:port. The host of "[::1]:80" is "::1".
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
  // SO_REUSEADDR allows a restart while old connections are in TIME_WAIT.
  return set(SOL_SOCKET, SO_REUSEADDR, 1) && set(IPPROTO_TCP, TCP_NODELAY, 1) &&
         set(SOL_SOCKET, SO_KEEPALIVE, 1) &&
         set(IPPROTO_TCP, TCP_KEEPIDLE, kIdleSeconds) &&
         set(IPPROTO_TCP, TCP_KEEPINTVL, kProbeSeconds) &&
         set(IPPROTO_TCP, TCP_KEEPCNT, kProbes) &&
         set(IPPROTO_TCP, TCP_USER_TIMEOUT, kUnacknowledgedMs);
}

// Returns the address of a socket; its size is 0 if the socket has none.
std::pair<sockaddr_in6, socklen_t> AddressOf(int fd) {
  sockaddr_in6 address = {};  // an IPv4 address fits into it
  socklen_t size = sizeof(address);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    size = 0;
  }
  return {address, size};
}

// Returns the port, which is in the same place in both families.
in_port_t& PortIn(sockaddr_in6& address) { return address.sin6_port; }
static_assert(offsetof(sockaddr_in, sin_port) ==
              offsetof(sockaddr_in6, sin6_port));

// Returns whether `fd` is a socket that listens at this address; port 0 stands
// for any port.
bool ListensAt(int fd, const addrinfo& at) {
  int listens = 0;
  socklen_t option_size = sizeof(listens);
  getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &option_size);
  auto [address, size] = AddressOf(fd);
  if (listens != 1 || size != at.ai_addrlen || size > sizeof(address)) {
    return false;
  }
  sockaddr_in6 wanted = {};
  std::memcpy(&wanted, at.ai_addr, size);
  if (PortIn(wanted) == 0) PortIn(address) = 0;
  return std::memcmp(&address, &wanted, size) == 0;
}

// Returns the kept socket, or an invalid descriptor if none is kept that fits.
// A kept socket that does not fit is shut down: the keeper's descriptor of it
// would otherwise hold the port.
UniqueFd TakeKept(const TcpSocket& socket, const std::string& name,
                  const addrinfo& at) {
  if (socket.kept == nullptr) return UniqueFd();
  UniqueFd fd = socket.kept->Take(name);
  if (!fd.valid()) return fd;
  if (ListensAt(fd.get(), at) && SetOptions(fd.get()) &&
      fcntl(fd.get(), F_SETFL, O_NONBLOCK) == 0) {
    return fd;
  }
  Log(LogLevel::kWarning, "a kept socket is not used: another one is made",
      {{"name", name},
       {"socket", socket.address},
       {"reason", "it does not listen there"}});
  shutdown(fd.get(), SHUT_RDWR);
  return UniqueFd();
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

// Listens, even if kept sockets of earlier options are in the way.
absl::StatusOr<UniqueFd> ListenBesideKept(const addrinfo& at,
                                          const TcpSocket& socket) {
  absl::StatusOr<UniqueFd> fd = Listen(at, socket.address);
  if (fd.ok() || errno != EADDRINUSE || socket.kept == nullptr) return fd;
  socket.kept->ShutDownRest();
  return Listen(at, socket.address);
}

}  // namespace

absl::StatusOr<std::unique_ptr<TcpListener>> TcpListener::Start(
    const TcpSocket& socket) {
  const std::string& address = socket.address;
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
    // The system may return the same address of a name twice.
    if (std::ranges::any_of(sockets, [at](const UniqueFd& fd) {
          return ListensAt(fd.get(), *at);
        })) {
      continue;
    }
    const std::string name =
        absl::StrCat(socket.kept_name, "-", sockets.size());
    if (UniqueFd taken = TakeKept(socket, name, *at); taken.valid()) {
      sockets.push_back(std::move(taken));
      continue;
    }
    absl::StatusOr<UniqueFd> made = ListenBesideKept(*at, socket);
    // A name may stand for an address of a family that this machine lacks.
    const bool is_last = at->ai_next == nullptr;
    if (!made.ok() && (!is_last || !sockets.empty()) &&
        (errno == EADDRNOTAVAIL || errno == EAFNOSUPPORT)) {
      continue;
    }
    RETURN_IF_ERROR(made.status());
    if (socket.kept != nullptr) socket.kept->Keep(name, *made);
    sockets.push_back(*std::move(made));
  }
  return absl::WrapUnique(new TcpListener(std::move(sockets)));
}

int TcpListener::port() const {
  sockaddr_in6 address = AddressOf(sockets_.front().get()).first;
  return ntohs(PortIn(address));
}

UniqueFd TcpListener::Connect() const {
  const auto [address, size] = AddressOf(sockets_.front().get());
  UniqueFd fd(socket(address.sin6_family,
                     SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
  // If the socket listens at all addresses, connecting to its address reaches
  // this machine.
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), size) !=
          0 &&
      errno != EINPROGRESS) {
    return UniqueFd();
  }
  return fd;
}

}  // namespace pando
