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
#include "service/sockets/unix_peer.h"

namespace pando {

// 16 random bytes that let their holder have memory once. A secret: never
// logged.
using AttachToken = std::array<char, 16>;

// What a token stands for.
struct AttachGrant {
  enum class What { kPool, kLane };

  SessionId session;
  What what = What::kPool;
  // Of a lane: what the caller showed who asked for it; empty: nothing.
  std::string authorization = {};
};

// The tokens handed out and not yet shown. Owned by MemorySocket; any thread
// may call it. Holds at most max_per_session of a session, each valid once and
// for ttl at most. How many there are in all is bounded by how many sessions
// there are: what one session does with its tokens leaves those of the others
// alone.
class AttachTokens {
 public:
  AttachTokens(absl::Duration ttl, size_t max_per_session)
      : ttl_(absl::ToChronoNanoseconds(ttl)),
        max_per_session_(max_per_session) {}

  // For `holder` alone, who asked for it; none: it is not known who did.
  absl::StatusOr<AttachToken> Issue(AttachGrant grant,
                                    std::optional<UnixPeer> holder);

  // What the token was issued for; nothing when it is unknown, used, too old,
  // or another's. In any case it is not valid any more.
  std::optional<AttachGrant> Redeem(const AttachToken& token,
                                    const UnixPeer& shown_by);

  // Whether this peer may show a token that is outstanding.
  bool AreFor(const UnixPeer& peer);

  // The session has ended.
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
  // No session without tokens, and no more than max_per_session_ of one.
  absl::flat_hash_map<SessionId, IssuedTokens> sessions_
      ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<AttachToken, SessionId> owners_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pando

#endif  // PANDO_SERVICE_MEMORY_ATTACH_TOKENS_H_
