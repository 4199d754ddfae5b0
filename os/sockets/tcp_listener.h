#ifndef PANDO_OS_SOCKETS_TCP_LISTENER_H_
#define PANDO_OS_SOCKETS_TCP_LISTENER_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace pando {

// Listening, non-blocking sockets for all addresses that a host:port stands
// for. TCP keepalive ends a connection when the peer's host is gone: the
// kernels ask and answer, however busy the processes at both ends are. Owned by
// the server that accepts from it.
class TcpListener {
 public:
  // An error if a server listens there already.
  static absl::StatusOr<std::unique_ptr<TcpListener>> Start(
      const std::string& address);
  TcpListener(const TcpListener&) = delete;
  TcpListener& operator=(const TcpListener&) = delete;

  const std::vector<UniqueFd>& sockets() const { return sockets_; }

 private:
  explicit TcpListener(std::vector<UniqueFd> sockets)
      : sockets_(std::move(sockets)) {}

  const std::vector<UniqueFd> sockets_;
};

}  // namespace pando

#endif  // PANDO_OS_SOCKETS_TCP_LISTENER_H_
