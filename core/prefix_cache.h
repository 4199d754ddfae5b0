#ifndef PANDO_CORE_PREFIX_CACHE_H_
#define PANDO_CORE_PREFIX_CACHE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/ids.h"
#include "core/event_log.h"
#include "core/eviction_policy.h"
#include "core/eviction_reason.h"
#include "core/ghost_list.h"
#include "core/measurements.h"
#include "core/operator_results.h"
#include "core/page_pool.h"
#include "core/pending_pages.h"
#include "core/quarantine.h"
#include "core/quota_classes.h"
#include "core/radix_tree.h"
#include "core/requests.h"
#include "core/session_limits.h"
#include "core/session_table.h"
#include "core/stats.h"
#include "core/tree_copy.h"

namespace pando {

// The cache: which token prefixes are in which pages, who keeps them there, and
// what goes when room is needed. Page ids only; the bytes are elsewhere.
//
// Owned by Server. Thread-safe: a monitor with one mutex, the only lock on the
// data path. What it owns is single-threaded code that knows no lock. It has no
// clock and no threads; time is an argument of ExpireSessions, and stands still
// in between.
//
// A call that fails changes nothing; its status carries a Reason. A session
// that is unknown, ended or of an earlier epoch gives SESSION_LOST.
//
// Invariants, beside those of the parts: each page is in exactly one state; a
// sealed page is in exactly one node; each lock belongs to one live session and
// names one live node; each reserved page belongs to one live session.
class PrefixCache {
 public:
  struct Options {
    uint32_t page_tokens;     // at least 1
    uint32_t capacity_pages;  // at least 2; page 0 is padding
    EvictionPolicyKind eviction_policy = EvictionPolicyKind::kLru;
    // EvictToWatermark: below `low` free pages it evicts until `high` are free.
    uint32_t low_free_pages = 0;
    uint32_t high_free_pages = 0;
    std::vector<QuotaClass> quota_classes = {};
    SessionLimits session_limits = {};
    // Told of each wait that ended, but for cancelled ones: outside the mutex,
    // by the thread that ended it, maybe before the Match that began the wait
    // has returned. Needed when matches wait.
    std::function<void(WaitId, PendingOutcome)> on_wait_over = nullptr;
    // Nanoseconds of time that only goes forward; null: nothing is timed.
    int64_t (*clock)() = nullptr;
  };

  explicit PrefixCache(const Options& options);

  // Finds the longest cached prefix; on request locks it and reserves pages for
  // the rest, evicting as needed, in one step.
  absl::StatusOr<MatchResult> Match(const MatchRequest& request);
  // How much of a waiting prompt is cached. Changes nothing.
  absl::StatusOr<PrefixScore> Score(const PrefixQuery& query);
  // Ends the wait of a match; false when it is over already.
  bool CancelWait(WaitId wait);
  // Publishes pages under a prefix. The caller's writes to them are complete.
  absl::StatusOr<InsertResult> Insert(const InsertRequest& request);
  absl::StatusOr<LockResult> Lock(const LockRequest& request);
  absl::Status Unlock(SessionId session, std::span<const LockId> locks,
                      RequestId request_id = {});

  absl::StatusOr<std::vector<PageId>> Allocate(const AllocateRequest& request);
  absl::Status Free(SessionId session, std::span<const PageId> pages,
                    RequestId request_id = {});
  // Evicts up to `pages` pages, none that takes a class below its floor, and
  // returns how many it did.
  uint32_t Evict(uint32_t pages);
  // The same for the watermark of the options: a bounded step, to be repeated.
  uint32_t EvictToWatermark();
  // Evicts all that is not locked: of all namespaces, or of one.
  FlushResult Flush();
  FlushResult FlushNamespace(const NamespaceKey& key);
  FlushResult FlushNamespace(NamespaceNumber number);
  // Changes the watermark of the options.
  void SetWatermark(uint32_t low_free_pages, uint32_t high_free_pages);
  // Changes floors and caps. Nothing is evicted for that: a class that is above
  // its new cap is refused pages, or makes room, when it asks for more.
  // REQUIRES: the classes and their patterns are those of the options.
  void SetQuotas(const std::vector<QuotaClass>& classes);
  // Changes what a session may have, of those that are open, too. A session
  // that has more keeps it, and gets no more.
  void SetSessionLimits(const SessionLimits& limits);
  // Changes the order of eviction, of what is cached already, too. Returns the
  // policy of before.
  EvictionPolicyKind SetEvictionPolicy(EvictionPolicyKind policy);

  // REQUIRES: `id` is random, not 0.
  SessionNumber OpenSession(SessionId id, std::string client_name);
  // The worker maps the pool: from now on it may write to its reserved pages.
  absl::Status AttachSession(SessionId id);
  // The worker is done, with its writes too: locks released, pages freed.
  void CloseSession(SessionId id);
  // The liveness stream broke: the session is lost at `lost_at` unless resumed,
  // and at once if its processes are gone.
  void SuspendSession(SessionId id, absl::Time lost_at);
  absl::StatusOr<SessionNumber> ResumeSession(SessionId id);
  // OK while the session lives.
  absl::Status CheckSession(SessionId id);
  // The processes that mapped the pool for the session are gone and write no
  // more: pages that it left in quarantine are free, and once its stream has
  // broken too, the session is lost at once and its pages are free.
  void ProcessGone(SessionId id);
  // Ends the sessions that are lost by `now`, whose pages go to quarantine for
  // `quarantine`, and frees the pages that have waited there long enough.
  ExpiredSessions ExpireSessions(absl::Time now, absl::Duration quarantine);

  // From now on what enters and leaves the cache is logged. Idempotent.
  void StartEvents();
  // Swaps what happened since the last call into `events`. The first call, and
  // one that comes much too late, begins with AllCleared and what is cached.
  void TakeEvents(std::vector<RawEvent>& events);
  // The same for a second taker, who wants to know what comes and goes and not
  // what is there: after AllCleared follows only what happened since. Logged
  // from the first call on.
  void TakeChurn(std::vector<RawEvent>& events);

  // For operators; proto/pando/v1/admin.proto says what they tell.
  NamespaceList ListNamespaces(uint32_t limit);
  SessionList ListSessions(uint32_t limit);
  // Of one session, or of all.
  LockList ListLocks(uint32_t limit, std::optional<SessionNumber> session);
  // Returns how many it released.
  absl::StatusOr<uint32_t> ReleaseLocks(SessionNumber session);
  MatchExplanation ExplainMatch(const NamespaceKey& ns,
                                std::span<const Token> tokens);
  // Of one namespace, or of all.
  TreeDump DumpTree(uint32_t limit, std::optional<NamespaceNumber> ns);

  // A copy of the tree in parts, for those who look at it all the time: the
  // mutex is held for some hundred nodes at once. Begin with block 0 and go on
  // until next_block is 0. What changes meanwhile is in the copy as it was
  // before or after, or both; CopyNodes brings parents that are missing.
  TreePart CopyTree(uint32_t block);
  // Those of the nodes that are still there.
  std::vector<NodeCopy> CopyNodes(std::span<const NodeHandle> handles);
  // The first tokens of a node, at most `limit`; empty when it is gone.
  std::vector<Token> CopyTokens(NodeHandle handle, uint32_t limit);

  CacheStats Stats();
  // Nothing is locked and nothing reserved.
  bool IsIdle();
  // A sentence for each invariant that does not hold. Linear in the cache and
  // under the mutex: for tests and operators.
  std::vector<std::string> CheckInvariants();

  uint32_t page_tokens() const { return options_.page_tokens; }
  uint32_t capacity_pages() const { return options_.capacity_pages; }

 private:
  friend class DamagedCache;  // tests break what CheckInvariants finds

  // Holds the mutex; then tells of the waits that ended meanwhile.
  class ABSL_SCOPED_LOCKABLE Hold {
   public:
    explicit Hold(PrefixCache* cache)
        ABSL_EXCLUSIVE_LOCK_FUNCTION(cache->mutex_)
        : cache_(cache) {
      cache_->mutex_.Lock();
    }
    // Also measures: the wait for the mutex, and all until it is released.
    Hold(PrefixCache* cache, Operation operation)
        ABSL_EXCLUSIVE_LOCK_FUNCTION(cache->mutex_);
    ~Hold() ABSL_UNLOCK_FUNCTION();
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    double SecondsSinceBegin() const;

    PrefixCache* const cache_;
    std::optional<Operation> operation_;  // that is measured
    int64_t begin_ = 0;
  };

  absl::StatusOr<Session*> FindSession(SessionId id)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the session may take so many locks and reserve so many pages more.
  absl::Status CheckSessionLimits(const Session& session, uint32_t locks,
                                  uint32_t pages)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<LockRecord*> FindLock(const Session& session, LockId id)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The answer that an earlier call of the session with this id got; null when
  // this call is the first.
  template <typename T>
  absl::StatusOr<const T*> FindAnswer(const Session& session, RequestId id)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (id == RequestId()) return nullptr;
    absl::StatusOr<const T*> answer = session.answers.Find<T>(id);
    if (answer.ok() && *answer != nullptr) ++counters_.repeated_requests;
    return answer;
  }
  template <typename T>
  static void KeepAnswer(Session& session, RequestId id, const T& answer) {
    if (id != RequestId()) session.answers.Add(id, answer);
  }

  // Where a prefix ends that is as long as possible.
  struct FoundPrefix {
    Namespace* ns = nullptr;  // null: nothing is cached in it
    TreePosition position = {};
    uint32_t max_pages = 0;  // more were not asked for

    uint32_t pages() const { return ns == nullptr ? 0 : position.pages(); }
  };
  absl::StatusOr<FoundPrefix> FindPrefix(const PrefixQuery& query,
                                         std::vector<PageId>* pages)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<TreePosition> FindHandle(const NamespaceKey& ns,
                                          PrefixHandle handle)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  PrefixHandle HandleTo(TreePosition position) const;

  // Parts of Match.
  absl::Status MatchAndLock(const MatchRequest& request, Session* session,
                            MatchResult& result)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void HoldPrompt(const MatchRequest& request, const MatchResult& result);

  // Single flight.
  PendingPage* FindPending(const FoundPrefix& found, const PrefixQuery& query)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MarkPending(LockRecord& lock, std::span<const Token> rest,
                   Reservation reserved) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndPending(PendingPage* page, PendingOutcome outcome)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReleasePage(Session& session, PageId page)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Parts of Insert.
  struct InsertSource {
    uint32_t lookahead = 0;
    HeldPrompt prompt = {};
    // The call is a repeat.
    std::optional<InsertResult> answer = {};
  };
  struct InsertTarget {
    Session* session;
    LockRecord* anchor;  // null: none
    Namespace* ns;       // null: nothing is cached in it
    TreePosition start;
  };
  absl::StatusOr<InsertSource> FindSource(const InsertRequest& request);
  absl::StatusOr<InsertTarget> FindTarget(const InsertRequest& request,
                                          Session& session)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckInsertedPages(const InsertRequest& request,
                                  const Session& session,
                                  std::span<const PageId> canonical)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckInsertQuota(const InsertRequest& request,
                                uint32_t quota_class, size_t existing)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  TreePosition Publish(const InsertRequest& request, InsertTarget& target,
                       SegmentRef& segment, TreePosition position,
                       size_t existing) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint32_t FreeDuplicates(const InsertRequest& request, Session& session,
                          std::span<const PageId> canonical)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MoveLock(LockRecord& lock, Node& descendant,
                const InsertRequest& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Pages.
  absl::Status CheckReserved(const Session& session,
                             std::span<const PageId> pages)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether `pages` can be reserved for a class, of whose evictable pages
  // `held_back` are not counted.
  absl::Status CheckRoom(uint32_t pages, uint32_t quota_class,
                         uint32_t held_back)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // REQUIRES: CheckRoom says so.
  void Reserve(uint32_t pages, uint32_t quota_class, Session& session,
               std::vector<PageId>& out) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Eviction.
  uint32_t UsedPages(uint32_t quota_class) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Evictable pages of a class that are above its floor.
  uint32_t SparePages(uint32_t quota_class) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint32_t EvictSpare(uint32_t pages, EvictionReason reason)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint32_t EvictFromTree(uint32_t pages, std::span<uint32_t> limits,
                         EvictionReason reason)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RememberEvicted(const Node& leaf, uint32_t kept_pages,
                       EvictionReason reason)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Frees evicted_ and tells of it; returns how many pages that were.
  uint32_t FreeEvicted(EvictionReason reason)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t& EvictionCounter(EvictionReason reason)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LogTree(EventLog& log);
  static void LogNode(const Node& node, EventLog& log);
  // A step of a flush; returns whether there is more to evict.
  bool FlushStep(Namespace& ns, FlushResult& result)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  static GhostList::Place PlaceAfter(const Node& node);

  // Parts of what operators are told.
  struct FoundLock {
    const LockRecord* lock;
    uint32_t pages;  // that it locks
  };
  std::vector<LockInfo> OldestLocks(std::vector<FoundLock> found,
                                    size_t limit) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Locks on some or all of the prefix that ends there.
  std::vector<FoundLock> LocksUpTo(TreePosition end)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ExplainEnd(const FoundPrefix& found, const PrefixQuery& query,
                  MatchExplanation& result)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<NamespaceNumber> NamespacesWithMore(const NamespaceKey& than,
                                                  std::span<const Token> tokens,
                                                  uint32_t matched_tokens);
  void DumpNamespace(const Namespace& ns, uint32_t limit, TreeDump& dump) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  NodeCopy CopyOf(const Node& node) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Locks.
  LockRecord& TakeLock(Session& session, Node& node)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReleaseLock(LockRecord& lock, LockEnd end)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends a session whose processes write no more.
  void EndLost(Session& session) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EraseLost(Session& session) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ReleaseAllLocks(Session& session, LockEnd end)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FreeReserved(Session& session) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Measurements.
  void RecordMatch(const FoundPrefix& found, uint32_t quota_class)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // `end` and its ancestors are about to be used by a match.
  void RecordReuse(const Node& end) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RecordEviction(const Node& leaf, uint32_t pages, EvictionReason reason)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  const QuotaClasses quotas_;

  absl::Mutex mutex_;
  RadixTree tree_ ABSL_GUARDED_BY(mutex_);
  PagePool pool_ ABSL_GUARDED_BY(mutex_);
  SessionTable sessions_ ABSL_GUARDED_BY(mutex_);
  // Since the last ExpireSessions.
  std::vector<SessionNumber> lost_sessions_ ABSL_GUARDED_BY(mutex_);
  Quarantine quarantine_ ABSL_GUARDED_BY(mutex_);
  PendingPages pending_ ABSL_GUARDED_BY(mutex_);
  CacheCounters counters_ ABSL_GUARDED_BY(mutex_);
  Measurements measured_ ABSL_GUARDED_BY(mutex_);
  EventLog events_ ABSL_GUARDED_BY(mutex_);
  EventLog churn_ ABSL_GUARDED_BY(mutex_);
  GhostList ghosts_ ABSL_GUARDED_BY(mutex_);
  absl::Time time_ ABSL_GUARDED_BY(mutex_) = absl::UnixEpoch();
  // Scratch.
  std::vector<PageId> evicted_ ABSL_GUARDED_BY(mutex_);
  std::vector<uint32_t> limits_ ABSL_GUARDED_BY(mutex_);  // of each class
  SessionLimits session_limits_ ABSL_GUARDED_BY(mutex_);
  uint32_t low_free_pages_ ABSL_GUARDED_BY(mutex_);
  uint32_t high_free_pages_ ABSL_GUARDED_BY(mutex_);
  bool is_below_watermark_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<PageLimits> class_limits_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pando

#endif  // PANDO_CORE_PREFIX_CACHE_H_
