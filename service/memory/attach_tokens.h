#ifndef PANDO_SERVICE_MEMORY_ATTACH_TOKENS_H_
#define PANDO_SERVICE_MEMORY_ATTACH_TOKENS_H_

#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/ids.h"
#include "os/sockets/unix_peer.h"

namespace pando {

// 16 random bytes that entitle their holder to receive memory once. A secret:
// never logged.
using AttachToken = std::array<char, 16>;

// The right of a token's holder: a kind of memory, for one session.
struct AttachGrant {
  enum class What { kPool, kBlockMemory, kLane };

  SessionId session;
  What what = What::kPool;
  // For a lane: the authorization that the caller of OpenLane showed; empty if
  // none.
  std::string authorization = {};
};

// The tokens that were issued and not yet redeemed. Each token is valid once,
// and for `ttl` at most. Each session has at most max_per_session of them, so
// that no session can use up the tokens of the others. Owned by MemorySocket;
// thread-safe.
class AttachTokens {
 public:
  AttachTokens(absl::Duration ttl, size_t max_per_session)
      : ttl_(absl::ToChronoNanoseconds(ttl)),
        max_per_session_(max_per_session) {}

  // Issues a token that only the process `holder` may redeem. If `holder` is
  // none, because it is not known who asked, any process may redeem it. Returns
  // SESSION_LIMIT if the session has too many tokens that it has not used.
  absl::StatusOr<AttachToken> Issue(AttachGrant grant,
                                    std::optional<UnixPeer> holder);

  // Takes a token that the process `shown_by` has shown. Returns what the token
  // was issued for, or none if it is unknown, used, too old, or another
  // holder's. In any case the token is void afterwards.
  std::optional<AttachGrant> Redeem(const AttachToken& token,
                                    const UnixPeer& shown_by);

  // Returns whether there is a token that this peer may redeem.
  bool HasTokenFor(const UnixPeer& peer);

  // Drops the tokens of a session that has ended.
  void Forget(SessionId session);

 private:
  using Clock = std::chrono::steady_clock;

  struct Issued {
    AttachGrant grant;
    std::optional<UnixPeer> holder;
    Clock::time_point expires;
  };
  using IssuedTokens = absl::flat_hash_map<AttachToken, Issued>;

  void DropExpired(IssuedTokens& tokens) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::chrono::nanoseconds ttl_;
  const size_t max_per_session_;
  absl::Mutex mutex_;
  // Has an entry only for sessions that have tokens, each with at most
  // max_per_session of them.
  absl::flat_hash_map<SessionId, IssuedTokens> sessions_
      ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<AttachToken, SessionId> owners_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pando

#endif  // PANDO_SERVICE_MEMORY_ATTACH_TOKENS_H_
