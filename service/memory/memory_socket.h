#ifndef PANDO_SERVICE_MEMORY_MEMORY_SOCKET_H_
#define PANDO_SERVICE_MEMORY_MEMORY_SOCKET_H_

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/ids.h"
#include "base/unique_fd.h"
#include "os/sockets/peer_filter.h"
#include "os/sockets/unix_listener.h"
#include "service/memory/attach_tokens.h"
#include "service/memory/shared_descriptor.h"

namespace pando {

// The status in the server's message; see MemorySocket.
enum class MemorySocketStatus : uint32_t {
  kOk = 0,
  // The token is unknown, used, too old or another process's, or its session
  // has ended.
  kBadToken = 1,
  // The server could not share the memory.
  kUnavailable = 2,
};

// The Unix stream socket that hands out descriptors of memory: of the pool, of
// the block memory or of a lane. It exists because gRPC cannot carry file
// descriptors. Owned by Server. One thread of its own serves all peers; a slow,
// silent or hostile peer delays no other. Destruction stops the thread and
// removes the socket file.
//
// On the wire, all integers are little endian:
//   peer:   the 16 bytes of an attach token
//   server: one message
//             4 bytes  "PNDO"
//             u32      version, 1
//             u32      status: MemorySocketStatus
//             u32      number of descriptors n, 0 unless status is 0
//             n times u64, the bytes to map of each
//           with the n descriptors as one SCM_RIGHTS control message on its
//           first byte: the shards of the pool, in their order; the block
//           memory; or of a lane, its memory, its doorbell (0 bytes) and the
//           gauge page
//   server: closes the connection
class MemorySocket {
 public:
  struct Config {
    UnixSocket socket;
    // Decides which peers may connect; outlives the socket. If it is null,
    // every peer may connect.
    PeerFilter* filter = nullptr;
    absl::Duration token_ttl = absl::Seconds(5);
    size_t max_tokens_per_session = 64;
    // How long a peer may take to send its token.
    absl::Duration peer_deadline = absl::Seconds(2);
    // The most peers at a time. When there are so many, a new peer that has no
    // token to redeem is refused. A new peer that may have one replaces a peer
    // that has none, or else the peer that came first, once that has had a fair
    // time.
    size_t max_peers = 64;
  };

  // Counts since the start.
  struct Stats {
    uint64_t attached = 0;
    // Peers that were answered kBadToken.
    uint64_t refused = 0;
    // Peers that went away, stayed silent, found no place or had to make room,
    // or were answered kUnavailable.
    uint64_t dropped = 0;
  };

  // Called on the socket's thread. Returns the descriptors that were granted to
  // the process `peer`, which may write to the memory from now on; for a lane,
  // it opens the lane first. Returns FAILED_PRECONDITION if the session is
  // over.
  using Share = std::function<absl::StatusOr<std::vector<SharedDescriptor>>(
      const AttachGrant& grant, const UnixPeer& peer)>;

  // Starts to serve, or returns why it cannot listen at the path.
  static absl::StatusOr<std::unique_ptr<MemorySocket>> Start(Config config,
                                                             Share share);
  ~MemorySocket();
  MemorySocket(const MemorySocket&) = delete;
  MemorySocket& operator=(const MemorySocket&) = delete;

  // The members below are thread-safe.
  absl::StatusOr<AttachToken> IssueToken(AttachGrant grant,
                                         std::optional<UnixPeer> holder) {
    return tokens_.Issue(std::move(grant), holder);
  }
  void ForgetTokens(SessionId session) { tokens_.Forget(session); }
  Stats stats() const;
  const std::string& path() const { return config_.socket.path; }

 private:
  using Clock = std::chrono::steady_clock;

  // A connection whose token is not complete yet.
  struct Peer {
    UniqueFd fd;
    UnixPeer identity;
    Clock::time_point arrived;
    Clock::time_point deadline;
    AttachToken token = {};
    size_t received = 0;
  };

  MemorySocket(Config config, Share share,
               std::unique_ptr<UnixListener> listener, UniqueFd stop);

  // The functions below run on the socket's thread.
  void Run();
  // Returns the time to the next deadline of a peer, or, unless the socket
  // `accepts` now, to the time when it accepts new peers again, whichever comes
  // first. Returns -1 if there is no such time.
  int MillisecondsToNextDeadline(bool accepts) const;
  void AcceptPeers();
  // Drops a peer that may not redeem any token. Returns false if there is no
  // such peer.
  bool DropPeerWithoutToken();
  void DropOldest();
  void DropLatePeers();
  // Returns false when the connection is to be closed.
  bool ReceiveToken(Peer& peer);
  void Answer(const Peer& peer);
  MemorySocketStatus Grant(const Peer& peer,
                           std::vector<SharedDescriptor>& descriptors);

  const Config config_;
  const Share share_;
  const std::unique_ptr<UnixListener> listener_;
  const UniqueFd stop_;
  AttachTokens tokens_;
  // In order of arrival, hence of deadline. Used by the socket's thread alone.
  std::deque<Peer> peers_;
  // New peers are not accepted before this time, because no descriptor is left,
  // or because all peers are new.
  Clock::time_point accept_after_ = {};
  std::atomic<uint64_t> attached_ = 0;
  std::atomic<uint64_t> refused_ = 0;
  std::atomic<uint64_t> dropped_ = 0;
  std::thread thread_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_MEMORY_MEMORY_SOCKET_H_
