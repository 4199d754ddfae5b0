#ifndef PANDO_CORE_PREFIX_CACHE_H_
#define PANDO_CORE_PREFIX_CACHE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/ids.h"
#include "core/cache_parts.h"
#include "core/event_log.h"
#include "core/eviction_policy.h"
#include "core/operator_results.h"
#include "core/quota_classes.h"
#include "core/requests.h"
#include "core/session_limits.h"
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

  absl::StatusOr<AllocateResult> Allocate(const AllocateRequest& request);
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
  // Somebody maps the pool for the session, and may write to its reserved pages
  // from now on. None: it cannot be watched, so its end will not be told.
  absl::Status AttachSession(SessionId id, std::optional<WriterId> writer);
  // The worker is done, with its writes too: locks released, pages freed, also
  // those that a session which is lost already has in quarantine.
  void CloseSession(SessionId id);
  // The liveness stream broke: the session is lost at `lost_at` unless resumed,
  // and at once if its writers are gone.
  void SuspendSession(SessionId id, absl::Time lost_at);
  absl::StatusOr<SessionNumber> ResumeSession(SessionId id);
  // OK while the session lives.
  absl::Status CheckSession(SessionId id);
  // A writer is gone. When it was the last one of a session, pages that the
  // session left in quarantine are free; a session whose stream has broken too
  // is lost at once and its pages are free.
  void WriterGone(WriterId writer);
  // Ends the sessions that are lost by `now`, whose pages go to quarantine, and
  // frees the pages there that nobody writes to any more: the writers that are
  // watched are gone, and for the others `quarantine` has passed.
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
  // The lost sessions with pages in quarantine, the oldest first.
  QuarantineList ListQuarantine(uint32_t limit);
  // Frees what a lost session has in quarantine although its writers may still
  // be writing to it. Returns how many pages that were.
  absl::StatusOr<uint32_t> FreeQuarantine(SessionNumber session);
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

  // Holds the mutex; then tells of the waits that ended meanwhile. The only way
  // to take the mutex.
  class Hold;

  // Gives the lock of `result` the tokens of the request that it is to hold.
  void HoldPrompt(const MatchRequest& request, const MatchResult& result);
  // The answer that an earlier call of the session with this id got; null when
  // this call is the first.
  template <typename T>
  absl::StatusOr<const T*> FindAnswer(const Session& session, RequestId id)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  const QuotaClasses quotas_;

  absl::Mutex mutex_;
  CacheParts parts_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pando

#endif  // PANDO_CORE_PREFIX_CACHE_H_
