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
#include "core/nodes/segment.h"
#include "core/nodes/slab.h"
#include "core/requests/answers.h"
#include "core/requests/errors.h"
#include "core/requests/session_limits.h"
#include "core/reuse/request_facts.h"
#include "core/sessions/session_ledger.h"
#include "core/sessions/writers.h"

namespace pando {

struct LockRecord;
struct PendingPage;

// How a session ended. This decides what happens to its locks and pages.
struct SessionEnd {
  LockEnd of_locks;
  // Unset: its reserved pages become free. Set: they go to quarantine; for
  // writers that are not watched, until this time.
  std::optional<absl::Time> quarantined_until;
  // The pages of the session that are already in state kQuarantined, but not in
  // Quarantine yet.
  std::vector<PageId> quarantined = {};
};

// A session: what one attached worker process holds. Plain data, owned by
// SessionTable.
struct Session {
  SessionId id;
  SessionNumber number;
  std::string client_name;
  // It belongs to a part of pandod, not to a worker.
  bool is_internal = false;
  absl::Time opened_at;
  PageOwner reserved;
  LockRecord* first_lock = nullptr;
  uint32_t lock_count = 0;
  uint64_t kept_bytes = 0;  // limited by SessionLimits::max_kept_bytes
  std::unique_ptr<BlockOwner> blocks = std::make_unique<BlockOwner>();
  // The part of kept_bytes that stands for the block holds and the open kinds.
  uint64_t counted_block_bytes = 0;
  uint64_t steps = 0;  // how many its calls have taken
  Answers answers;
  // The request ids of calls that have begun and still take steps.
  absl::flat_hash_set<RequestId> under_way;
  // The processes that may write to its reserved pages.
  Writers writers;
  // When the session will be lost; set only while its liveness stream is
  // broken.
  std::optional<absl::Time> lost_at;
  // How it ended; set once it has ended, while it still holds something.
  std::optional<SessionEnd> end;

  bool holds_anything() const {
    return lock_count > 0 || !reserved.pages.empty() ||
           blocks->holds_anything();
  }
  // Whether it holds pages or blocks that its writers could still use after its
  // loss.
  bool holds_what_is_written() const {
    return !reserved.pages.empty() || blocks->holds_anything();
  }
};

// The tokens of an admitted prompt that come after the end of its lock, so that
// an insert at that lock need not send them again. Shared, so that an insert
// can read them outside the mutex.
struct HeldPrompt {
  SegmentRef tokens;   // a segment without pages; none: no prompt
  uint32_t begin = 0;  // the tokens before this were inserted

  std::span<const Token> remaining() const {
    if (!tokens) return {};
    return std::span(tokens->tokens(), tokens->token_count()).subspan(begin);
  }
  friend bool operator==(const HeldPrompt&, const HeldPrompt&) = default;
};

// One lock: keeps `node` and its ancestors from eviction.
struct LockRecord {
  Session* session = nullptr;
  Node* node = nullptr;
  HeldPrompt prompt;
  RequestFacts request;  // the request that this lock admitted, if any
  // The number of tokens of `prompt` in the session's account: counted before
  // the copy is made, until it is dropped.
  uint32_t held_tokens = 0;
  // The page after `node`, while the session computes it; null: none.
  PendingPage* pending = nullptr;
  // Its release has begun: no call finds the lock any more, and `node` moves up
  // step by step.
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
// SessionHoldings changes the tree and the page pool to match. No call finds a
// session that has ended, but it stays here until it holds nothing.
//
// With a ledger it writes down what it records, for SessionRecovery.
//
// Owned by CacheParts; not thread-safe.
//
// Invariant: a lock belongs to one session and is in that session's list.
class SessionTable {
 public:
  // `ledger` outlives this; null: there is none.
  explicit SessionTable(PageLedger* ledger);

  // Opens a session. REQUIRES: `id` is not 0 and not in use.
  Session& Open(SessionId id, std::string client_name, absl::Time now,
                bool is_internal = false);
  // Opens a session of an earlier process, which has this cell of the ledger.
  // REQUIRES: as for Open, and its number is not in use.
  Session& Restore(uint8_t cell, const SessionFacts& facts);
  // Adds an answer to those of a session of an earlier process.
  void RestoreAnswer(Session& session, RequestId id, Answer answer);
  // Forgets the other locks of the earlier process.
  void ForgetEarlierLocks();
  // A lock of an earlier process.
  struct KeptLock {
    LockId id;
    Session* session;
    Node* node;
    HeldPrompt prompt;
    uint32_t held_tokens;
    absl::Time taken_at;
  };
  // Records these locks, in the order in which they were taken. REQUIRES: there
  // were no locks before, and CanRestore is true for each id.
  void RestoreLocks(std::span<const KeptLock> locks);
  bool CanRestore(LockId id) const { return locks_.CanRestore(id.value()); }
  // Returns a live session, or null.
  Session* Find(SessionId id) const;
  Session* Find(SessionNumber number) const;
  // The live session with the next higher number; null if there is none.
  const Session* SessionAfter(SessionNumber number) const;
  // The session with this id, or SESSION_LOST.
  absl::StatusOr<Session*> Get(SessionId id) const;
  // The same for a call that takes a step: counts the step, and begins a
  // change.
  absl::StatusOr<Session*> GetForStep(SessionId id);
  // Must be called before what the session holds is changed. EndChanges says
  // that all changes are complete, but for those of calls under way.
  void BeginChange(Session& session);
  void EndChanges();
  // The session whose account of bytes a call counts in: the one with this id,
  // or SESSION_LOST. SessionId() gives an account for all calls that name no
  // session.
  absl::StatusOr<Session*> GetAccount(SessionId id);
  // Ends a session: it moves to the ended sessions, and is not found by its id
  // or number any more.
  void End(Session& session, const SessionEnd& end);
  // The ended session that ended first; null if there is none.
  Session* first_ended() const {
    return ended_.empty() ? nullptr : ended_.front().get();
  }
  // Deletes first_ended(). REQUIRES: it has no locks and no reserved pages, and
  // holds no blocks.
  void EraseFirstEnded();

  // Record that a session takes a lock on a node, that a lock moves to another
  // node, and that a lock is gone.
  LockRecord& AddLock(Session& session, Node& node, absl::Time now);
  static LockId IdOf(const LockRecord& lock) {
    return LockId(Slab<LockRecord>::HandleOf(lock));
  }
  // Returns a lock of the session; null if the lock is unknown, belongs to
  // another session, or is being released.
  LockRecord* FindLock(const Session& session, LockId id) const;
  // Returns a lock of the session whose release has begun, or null.
  LockRecord* FindEndingLock(const Session& session, LockId id) const;
  // As FindLock, but LOCK_UNKNOWN instead of null. `subject` is the argument
  // that named the lock.
  absl::StatusOr<LockRecord*> GetLock(const Session& session, LockId id,
                                      Subject subject) const;
  // Marks locks as being released: only FindEndingLock finds them from now on.
  // LOCK_UNKNOWN if one is not a lock of the session; then nothing changes.
  absl::Status BeginRelease(const Session& session,
                            std::span<const LockId> ids);
  void MoveLock(LockRecord& lock, Node& node);
  void RemoveLock(LockRecord& lock);

  // Counts, in the session's account, a prompt of `tokens` tokens that the lock
  // is about to hold. REQUIRES: it holds none.
  void CountPrompt(LockRecord& lock, size_t tokens);
  // Gives the lock its prompt.
  void HoldPrompt(LockRecord& lock, HeldPrompt prompt);
  // Notes that the next `tokens` tokens of the prompt were inserted.
  void AdvancePrompt(LockRecord& lock, uint32_t tokens);
  // Drops the prompt that the lock holds, and takes it off the account.
  void DropPrompt(LockRecord& lock);

  // Stores the answer of a call of the session. The answers' bytes count in the
  // account, but an answer is never refused; Answers has a bound of its own.
  // REQUIRES: the session has no answer of this id.
  void KeepAnswer(Session& session, RequestId id, Answer answer);
  // Add to and take off the account bytes that are kept elsewhere for the
  // session.
  void KeepBytes(Session& session, uint64_t bytes);
  void ReleaseBytes(Session& session, uint64_t bytes);
  // Note that a process may write to the session's pages; none: one that cannot
  // be watched. And that the writer is gone.
  void AddWriter(Session& session, std::optional<WriterId> writer);
  void RemoveWriter(Session& session, WriterId writer);
  // Notes whose session it is, for the next process.
  void SetOwner(Session& session, const std::string& owner);
  // Updates the account after the session's block holds or open kinds have
  // changed.
  void CountBlockBytes(Session& session);

  // Sets the limits, for sessions that are open already, too. A session that
  // has more than a new limit keeps it, but gets nothing more.
  void SetLimits(const SessionLimits& limits) { limits_ = limits; }
  // SESSION_LIMIT unless the session may take one more lock, reserve `pages`
  // more pages, or have `bytes` more bytes in its account.
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
  // The lock that was taken first; null if there is none.
  const LockRecord* oldest_lock() const { return oldest_; }

  // Visits the sessions, the oldest first.
  template <typename F>
  void ForEachSession(F&& visit) const {
    for (const auto& [number, session] : by_number_) visit(*session);
  }
  // Visits the sessions that have ended and still hold something.
  template <typename F>
  void ForEachEnded(F&& visit) const {
    for (const auto& session : ended_) visit(*session);
  }
  // The lock in a cell; null when the cell is empty.
  const LockRecord* LockAt(uint32_t cell) const { return locks_.FindAt(cell); }
  uint32_t lock_cells() const { return locks_.cells(); }

  // From now on reports to `audit` the changes of locks that it has counted.
  // Null ends that.
  void set_audit(CacheAudit* audit) { audit_ = audit; }

 private:
  // Puts a new session into the maps.
  Session& Add(std::unique_ptr<Session> session);
  // Puts a lock, whose session and node are set, at the head of both lists.
  void Link(LockRecord& lock);
  // Drops the prompt, but only from the account.
  void ForgetPrompt(LockRecord& lock);
  bool IsAudited(const LockRecord& lock) const {
    return audit_ != nullptr &&
           audit_->HasCountedLock(Slab<LockRecord>::IndexOf(lock));
  }

  SessionLedger ledger_;
  // The sessions whose facts in the ledger a call is changing.
  std::vector<const Session*> changing_;
  absl::flat_hash_map<SessionId, std::unique_ptr<Session>> sessions_;
  absl::btree_map<SessionNumber, Session*> by_number_;
  std::deque<std::unique_ptr<Session>> ended_;  // in the order of their ends
  Slab<LockRecord> locks_;
  LockRecord* oldest_ = nullptr;
  LockRecord* newest_ = nullptr;
  uint32_t opened_;
  uint64_t kept_bytes_ = 0;
  Session no_session_;  // the account of calls that name no session
  SessionLimits limits_;
  CacheAudit* audit_ = nullptr;
};

}  // namespace pando

#endif  // PANDO_CORE_SESSIONS_SESSION_TABLE_H_
