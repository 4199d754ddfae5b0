#ifndef PANDO_OS_SOCKETS_PEER_TABLE_H_
#define PANDO_OS_SOCKETS_PEER_TABLE_H_

#include <optional>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "os/sockets/unix_peer.h"

namespace pando {

// Finds the process at the other end of a Unix connection that was handed to
// gRPC. gRPC names such a peer after the descriptor: "fd:12". It closes the
// descriptor only after the last call on the connection, so an entry is right
// as long as a call lives. The next connection with the same number replaces
// it. Owned by RpcServer; thread-safe.
class PeerTable {
 public:
  // Adds or replaces the entry of a descriptor.
  void Put(int fd, const UnixPeer& peer);

  // Returns the process of the connection that gRPC calls `name`, or none if
  // `name` does not name a Unix connection.
  std::optional<UnixPeer> Find(std::string_view name) const;

 private:
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<int, UnixPeer> peers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pando

#endif  // PANDO_OS_SOCKETS_PEER_TABLE_H_
