#ifndef PANDO_CORE_SESSIONS_SESSION_TABLE_H_
#define PANDO_CORE_SESSIONS_SESSION_TABLE_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/ids.h"
#include "core/blocks/block_holds.h"
#include "core/journal/measurements.h"
#include "core/nodes/cache_audit.h"
#include "core/nodes/node.h"
#include "core/nodes/page_pool.h"
#include "core/nodes/slab.h"
#include "core/requests/answers.h"
#include "core/requests/errors.h"
#include "core/requests/session_limits.h"
#include "core/reuse/request_facts.h"
#include "core/sessions/writers.h"

namespace pando {

struct LockRecord;
struct PendingPage;

// How a session ended, which says what becomes of what it held.
struct SessionEnd {
  LockEnd of_locks;
  // Its reserved pages are free; else quarantined, and then until this time for
  // the writers that are not watched.
  std::optional<absl::Time> quarantined_until;
  // The pages that are on the way there.
  std::vector<PageId> quarantined = {};
};

// One attached worker process: what it holds. Plain data, owned by
// SessionTable.
struct Session {
  SessionId id;
  SessionNumber number;
  std::string client_name;
  // It is pandod's own, and no worker's.
  bool is_internal = false;
  absl::Time opened_at;
  PageOwner reserved;
  LockRecord* first_lock = nullptr;
  uint32_t lock_count = 0;
  uint64_t kept_bytes = 0;  // of SessionLimits::max_kept_bytes
  std::unique_ptr<BlockOwner> blocks = std::make_unique<BlockOwner>();
  uint64_t counted_block_bytes = 0;  // of blocks->bytes, in kept_bytes
  uint64_t steps = 0;                // how many its calls have taken
  Answers answers;
  // The request ids of calls that take their steps.
  absl::flat_hash_set<RequestId> under_way;
  // Who may write to its reserved pages.
  Writers writers;
  // Set while the liveness stream is broken: when the session is lost.
  std::optional<absl::Time> lost_at;
  // Set once it has ended: what becomes of what it still holds.
  std::optional<SessionEnd> end;

  bool holds_anything() const {
    return lock_count > 0 || !reserved.pages.empty() ||
           blocks->holds_anything();
  }
  // Whether its writers may still write to, or read, something when it is lost.
  bool holds_what_is_written() const {
    return !reserved.pages.empty() || blocks->holds_anything();
  }
};

// The tokens of an admitted prompt that come after the end of its lock, so that
// an insert at that lock need not send them again. Shared, so that an insert
// can read them outside the mutex.
struct HeldPrompt {
  std::shared_ptr<const std::vector<Token>> tokens;  // null: none
  uint32_t begin = 0;  // the tokens before this were inserted

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
  RequestFacts request;  // that it admitted, if it did
  // The tokens of `prompt`, counted from before the copy is made until it is
  // dropped.
  uint32_t held_tokens = 0;
  // The page after `node`, while the session computes it; null: none.
  PendingPage* pending = nullptr;
  // Its release has begun, and `node` moves up: no call finds it any more.
  bool is_ending = false;
  absl::Time taken_at;
  // The neighbours in the list of the session's locks, newest first.
  LockRecord* next = nullptr;
  LockRecord* previous = nullptr;
  // The neighbours in the list of all locks, in the order in which they were
  // taken.
  LockRecord* newer = nullptr;
  LockRecord* older = nullptr;
};

// The live sessions and the locks that they hold. It only records them:
// SessionHoldings changes the tree and the page pool to match. A session that
// has ended is found no more, but stays here until it holds nothing.
//
// Owned by CacheParts; not thread-safe.
//
// Invariant: a lock belongs to one session and is in that session's list.
class SessionTable {
 public:
  // REQUIRES: `id` is not 0 and not in use.
  Session& Open(SessionId id, std::string client_name, absl::Time now);
  // Null when there is no such session.
  Session* Find(SessionId id) const;
  Session* Find(SessionNumber number) const;
  // The session with the next higher number; null: there is none.
  const Session* SessionAfter(SessionNumber number) const;
  // The session with this id, or SESSION_LOST.
  absl::StatusOr<Session*> Get(SessionId id) const;
  // The same for a call that takes a step, which is counted.
  absl::StatusOr<Session*> GetForStep(SessionId id);
  // The session for whose account of bytes a call is made: the one with this
  // id, or SESSION_LOST. SessionId() stands for all calls that name none.
  absl::StatusOr<Session*> GetAccount(SessionId id);
  // The session has ended: from now on it is one of the ended ones, and not
  // found by its id or number.
  void End(Session& session, const SessionEnd& end);
  // The one that ended first; null: there is none.
  Session* first_ended() const {
    return ended_.empty() ? nullptr : ended_.front().get();
  }
  // Deletes first_ended(). REQUIRES: it has no locks and no reserved pages, and
  // holds no blocks.
  void EraseFirstEnded();

  LockRecord& AddLock(Session& session, Node& node, absl::Time now);
  static LockId IdOf(const LockRecord& lock) {
    return LockId(Slab<LockRecord>::HandleOf(lock));
  }
  // Null when the lock is unknown, another session's, or about to end.
  LockRecord* FindLock(const Session& session, LockId id) const;
  // The same for a lock whose release has begun.
  LockRecord* FindEndingLock(const Session& session, LockId id) const;
  // The same, or LOCK_UNKNOWN; `subject` is what named the lock.
  absl::StatusOr<LockRecord*> GetLock(const Session& session, LockId id,
                                      Subject subject) const;
  // The locks are about to end: no call finds them from now on, but
  // FindEndingLock. LOCK_UNKNOWN if one is not the session's; then nothing
  // changes.
  absl::Status BeginRelease(const Session& session,
                            std::span<const LockId> ids);
  void MoveLock(LockRecord& lock, Node& node);
  void RemoveLock(LockRecord& lock);

  // Counts the prompt of so many tokens that the lock is about to hold.
  // REQUIRES: it holds none.
  void CountPrompt(LockRecord& lock, size_t tokens);
  // The lock holds no prompt any more.
  void DropPrompt(LockRecord& lock);

  // Stores the answer of a call of the session. Answers have a bound of their
  // own: they take from what else may be kept, but are never refused.
  // REQUIRES: the session has no answer of this id.
  void KeepAnswer(Session& session, RequestId id, Answer answer);
  // Counts what is kept for the session elsewhere, and no longer.
  void KeepBytes(Session& session, uint64_t bytes);
  void ReleaseBytes(Session& session, uint64_t bytes);
  // Counts what the session's holds of blocks take now.
  void CountBlockBytes(Session& session);

  // The limits hold for sessions that are open already, too. A session that has
  // more than a lower limit keeps it, and gets no more.
  void SetLimits(const SessionLimits& limits) { limits_ = limits; }
  // SESSION_LIMIT unless the session may take one more lock, reserve so many
  // more pages, or have so many more bytes kept for it.
  absl::Status CheckMoreLocks(const Session& session) const;
  absl::Status CheckMorePages(const Session& session, uint32_t pages) const;
  // The most pages that CheckMorePages lets the session reserve.
  uint32_t MaxMorePages(const Session& session) const;
  absl::Status CheckMoreBytes(const Session& session, uint64_t bytes) const;
  // The same for one more block that is locked, or reserved.
  absl::Status CheckMoreLockedBlocks(const Session& session) const;
  absl::Status CheckMoreReservedBlocks(const Session& session) const;

  uint32_t session_count() const {
    return static_cast<uint32_t>(sessions_.size());
  }
  uint32_t lock_count() const { return locks_.size(); }
  // The bytes that are kept for all sessions together.
  uint64_t kept_bytes() const { return kept_bytes_; }
  // The lock that was taken first; null: there is none.
  const LockRecord* oldest_lock() const { return oldest_; }

  // Visits the sessions, the oldest first.
  template <typename F>
  void ForEachSession(F&& visit) const {
    for (const auto& [number, session] : by_number_) visit(*session);
  }
  // Visits those that have ended.
  template <typename F>
  void ForEachEnded(F&& visit) const {
    for (const auto& session : ended_) visit(*session);
  }
  // The lock in a cell; null when the cell is empty.
  const LockRecord* LockAt(uint32_t cell) const { return locks_.FindAt(cell); }
  uint32_t lock_cells() const { return locks_.cells(); }

  // Reports changes of counted locks to `audit` from now on; null ends that.
  void set_audit(CacheAudit* audit) { audit_ = audit; }

 private:
  bool IsAudited(const LockRecord& lock) const {
    return audit_ != nullptr &&
           audit_->HasCountedLock(Slab<LockRecord>::IndexOf(lock));
  }

  absl::flat_hash_map<SessionId, std::unique_ptr<Session>> sessions_;
  absl::btree_map<SessionNumber, Session*> by_number_;
  std::deque<std::unique_ptr<Session>> ended_;  // in this order
  Slab<LockRecord> locks_;
  LockRecord* oldest_ = nullptr;
  LockRecord* newest_ = nullptr;
  uint32_t opened_ = 0;
  uint64_t kept_bytes_ = 0;
  Session no_session_;  // has an account of bytes, and nothing else
  SessionLimits limits_;
  CacheAudit* audit_ = nullptr;
};

}  // namespace pando

#endif  // PANDO_CORE_SESSIONS_SESSION_TABLE_H_
