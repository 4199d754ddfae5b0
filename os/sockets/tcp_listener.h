#ifndef PANDO_OS_SOCKETS_TCP_LISTENER_H_
#define PANDO_OS_SOCKETS_TCP_LISTENER_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "os/keeping/kept_descriptors.h"

namespace pando {

// A host:port to serve on.
struct TcpSocket {
  std::string address;
  // Where its sockets are kept for the next process; null: nowhere. Each is
  // kept under kept_name with a number.
  KeptDescriptors* kept = nullptr;
  std::string kept_name = {};
};

// Listening, non-blocking sockets for all addresses that a host:port stands
// for. TCP keepalive ends a connection when the peer's host is gone: the
// kernels ask and answer, however busy the processes at both ends are. Owned by
// the server that accepts from it.
class TcpListener {
 public:
  // Takes over sockets that are kept, in which callers wait that connected
  // meanwhile, and makes the others. Returns an error if another server listens
  // at the address.
  static absl::StatusOr<std::unique_ptr<TcpListener>> Start(
      const TcpSocket& socket);
  TcpListener(const TcpListener&) = delete;
  TcpListener& operator=(const TcpListener&) = delete;

  const std::vector<UniqueFd>& sockets() const { return sockets_; }
  // Returns the port of the first socket.
  int port() const;
  // Returns a new connection to the first socket, which wakes the thread that
  // waits for callers. It may not be established yet. It is not valid if
  // connecting fails at once.
  UniqueFd Connect() const;

 private:
  explicit TcpListener(std::vector<UniqueFd> sockets)
      : sockets_(std::move(sockets)) {}

  const std::vector<UniqueFd> sockets_;
};

}  // namespace pando

#endif  // PANDO_OS_SOCKETS_TCP_LISTENER_H_
