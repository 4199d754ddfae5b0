#ifndef PANDO_CORE_SESSION_TABLE_H_
#define PANDO_CORE_SESSION_TABLE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/ids.h"
#include "core/answers.h"
#include "core/errors.h"
#include "core/node.h"
#include "core/page_pool.h"
#include "core/session_limits.h"
#include "core/slab.h"
#include "core/writers.h"

namespace pando {

struct LockRecord;
struct PendingPage;

// One attached worker process: what it holds. Plain data, owned by
// SessionTable.
struct Session {
  SessionId id;
  SessionNumber number;
  std::string client_name;
  absl::Time opened_at;
  PageOwner reserved;
  LockRecord* first_lock = nullptr;
  uint32_t lock_count = 0;
  Answers answers;
  // Who may write to its reserved pages.
  Writers writers;
  // Set while the liveness stream is broken: when the session is lost.
  std::optional<absl::Time> lost_at;
};

// The tokens of an admitted prompt that come after its lock's boundary. Shared,
// so that they can be read outside the mutex.
struct HeldPrompt {
  std::shared_ptr<const std::vector<Token>> tokens;  // null: none
  uint32_t begin = 0;  // of what comes after the boundary

  std::span<const Token> remaining() const {
    if (tokens == nullptr) return {};
    return std::span<const Token>(*tokens).subspan(begin);
  }
  friend bool operator==(const HeldPrompt&, const HeldPrompt&) = default;
};

// One lock: keeps `node` and its ancestors from eviction.
struct LockRecord {
  Session* session = nullptr;
  Node* node = nullptr;
  HeldPrompt prompt;
  // The page after `node`, while the session computes it; null: none.
  PendingPage* pending = nullptr;
  absl::Time taken_at;
  // The session's others.
  LockRecord* next = nullptr;
  LockRecord* previous = nullptr;
  // All, in the order in which they were taken.
  LockRecord* newer = nullptr;
  LockRecord* older = nullptr;
};

// The live sessions and their locks. Owned by PrefixCache; not thread-safe.
// It keeps the books; PrefixCache changes tree and pool to match.
//
// Invariant: a lock belongs to one live session and is in that session's list.
class SessionTable {
 public:
  // REQUIRES: `id` is not 0 and not in use.
  Session& Open(SessionId id, std::string client_name, absl::Time now);
  // Null when there is no such session.
  Session* Find(SessionId id) const;
  // The same, or SESSION_LOST.
  absl::StatusOr<Session*> Get(SessionId id) const;
  // REQUIRES: the session has no locks and no reserved pages.
  void Erase(Session& session);

  LockRecord& AddLock(Session& session, Node& node, absl::Time now);
  static LockId IdOf(const LockRecord& lock) {
    return LockId(Slab<LockRecord>::HandleOf(lock));
  }
  // Null when the lock is unknown or another session's.
  LockRecord* FindLock(const Session& session, LockId id) const;
  // The same, or LOCK_UNKNOWN; `subject` is what named the lock.
  absl::StatusOr<LockRecord*> GetLock(const Session& session, LockId id,
                                      Subject subject) const;
  void RemoveLock(LockRecord& lock);

  // Of sessions that are open, too. One that has more keeps it.
  void SetLimits(const SessionLimits& limits) { limits_ = limits; }
  // Whether the session may take one more lock, and reserve so many pages more:
  // else SESSION_LIMIT.
  absl::Status CheckMoreLocks(const Session& session) const;
  absl::Status CheckMorePages(const Session& session, uint32_t pages) const;

  uint32_t session_count() const {
    return static_cast<uint32_t>(sessions_.size());
  }
  uint32_t lock_count() const { return locks_.size(); }
  // Null: there is none.
  const LockRecord* oldest_lock() const { return oldest_; }

  template <typename F>
  void ForEachSession(F&& visit) const {
    for (const auto& [id, session] : sessions_) visit(*session);
  }
  template <typename F>
  void ForEachLock(F&& visit) const {
    locks_.ForEach(visit);
  }

 private:
  absl::flat_hash_map<SessionId, std::unique_ptr<Session>> sessions_;
  Slab<LockRecord> locks_;
  LockRecord* oldest_ = nullptr;
  LockRecord* newest_ = nullptr;
  uint32_t opened_ = 0;
  SessionLimits limits_;
};

}  // namespace pando

#endif  // PANDO_CORE_SESSION_TABLE_H_
