#ifndef PANDO_SERVICE_SOCKETS_PEER_TABLE_H_
#define PANDO_SERVICE_SOCKETS_PEER_TABLE_H_

#include <optional>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "service/sockets/unix_peer.h"

namespace pando {

// The processes at the other ends of the Unix connections that were handed to
// gRPC, by the descriptor, after which gRPC names them: "fd:12". gRPC closes a
// descriptor only when the last call on its connection is over, so while there
// is a call its entry is the right one, and the next connection with the same
// number replaces it. Owned by RpcServer; thread-safe.
class PeerTable {
 public:
  void Put(int fd, const UnixPeer& peer);

  // None: `name` is not of a Unix connection.
  std::optional<UnixPeer> Find(std::string_view name) const;

 private:
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<int, UnixPeer> peers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pando

#endif  // PANDO_SERVICE_SOCKETS_PEER_TABLE_H_
