#ifndef PANDO_SERVICE_SOCKETS_UNIX_ACCEPTOR_H_
#define PANDO_SERVICE_SOCKETS_UNIX_ACCEPTOR_H_

#include <functional>
#include <memory>
#include <thread>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "service/sockets/peer_filter.h"
#include "service/sockets/unix_listener.h"
#include "service/sockets/unix_peer.h"

namespace pando {

// Accepts the connections of a Unix socket, for gRPC, which does not say who
// connects and accepts nobody again once the descriptors have run out. One
// thread of its own. Destruction stops it and removes the socket file.
class UnixAcceptor {
 public:
  // Called on the acceptor's thread.
  using OnConnected = std::function<void(UniqueFd fd, const UnixPeer& peer)>;

  // `filter` outlives the acceptor; null: it takes all.
  static absl::StatusOr<std::unique_ptr<UnixAcceptor>> Start(
      const UnixSocket& socket, PeerFilter* filter, OnConnected on_connected);
  ~UnixAcceptor();
  UnixAcceptor(const UnixAcceptor&) = delete;
  UnixAcceptor& operator=(const UnixAcceptor&) = delete;

 private:
  UnixAcceptor(std::unique_ptr<UnixListener> listener, UniqueFd stop,
               PeerFilter* filter, OnConnected on_connected);

  void Run();
  // False when no descriptor is left for the next one.
  bool AcceptAll();

  const std::unique_ptr<UnixListener> listener_;
  const UniqueFd stop_;
  PeerFilter* const filter_;
  const OnConnected on_connected_;
  std::thread thread_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_SOCKETS_UNIX_ACCEPTOR_H_
