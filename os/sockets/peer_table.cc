#include "os/sockets/peer_table.h"

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"

namespace pando {

void PeerTable::Put(int fd, const UnixPeer& peer) {
  absl::MutexLock hold(&mutex_);
  peers_[fd] = peer;
}

std::optional<UnixPeer> PeerTable::Find(std::string_view name) const {
  constexpr std::string_view kPrefix = "fd:";
  int fd = 0;
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  if (!absl::SimpleAtoi(absl::string_view(name.data(), name.size()), &fd)) {
    return std::nullopt;
  }
  absl::MutexLock hold(&mutex_);
  const auto found = peers_.find(fd);
  if (found == peers_.end()) return std::nullopt;
  return found->second;
}

}  // namespace pando
