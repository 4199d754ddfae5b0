#include "os/sockets/peer_filter.h"

#include <unistd.h>

#include <utility>

#include "absl/algorithm/container.h"
#include "os/logging/log.h"

namespace pando {

PeerFilter::PeerFilter(std::vector<uint32_t> allowed_uids)
    : allowed_uids_(std::move(allowed_uids)) {}

bool PeerFilter::Admit(const UnixPeer& peer, const std::string& socket) {
  if (allowed_uids_.empty() || peer.uid == geteuid() ||
      absl::c_linear_search(allowed_uids_, peer.uid)) {
    return true;
  }
  ++refused_;
  Log(LogLevel::kWarning, "connection refused: its user is not allowed",
      {{"socket", socket}, {"uid", peer.uid}, {"pid", peer.pid}});
  return false;
}

}  // namespace pando
