#ifndef PANDO_OS_SOCKETS_PEER_FILTER_H_
#define PANDO_OS_SOCKETS_PEER_FILTER_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "os/sockets/unix_peer.h"

namespace pando {

// Decides which users' processes may connect to the Unix sockets. Owned by
// Server; thread-safe.
class PeerFilter {
 public:
  // Allows these users, and the user of this process, who could do anything to
  // it anyway. If the list is empty, all users may connect that the mode of a
  // socket lets in.
  explicit PeerFilter(std::vector<uint32_t> allowed_uids);

  // Returns whether `peer`, which has connected to `socket`, may stay. A
  // refusal is counted and logged.
  bool Admit(const UnixPeer& peer, const std::string& socket);

  // Returns how many connections were refused.
  uint64_t refused() const { return refused_; }

 private:
  const std::vector<uint32_t> allowed_uids_;
  std::atomic<uint64_t> refused_ = 0;
};

}  // namespace pando

#endif  // PANDO_OS_SOCKETS_PEER_FILTER_H_
