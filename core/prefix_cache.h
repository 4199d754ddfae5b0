#ifndef PANDO_CORE_PREFIX_CACHE_H_
#define PANDO_CORE_PREFIX_CACHE_H_

#include <cstdint>
#include <functional>
#include <memory>
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
#include "core/eviction/eviction_policy.h"
#include "core/eviction/quota_classes.h"
#include "core/journal/event_log.h"
#include "core/journal/stats.h"
#include "core/kept_bytes.h"
#include "core/match/allocation.h"
#include "core/match/inserting.h"
#include "core/match/matching.h"
#include "core/operators/invariants.h"
#include "core/operators/tree_copy.h"
#include "core/parts/cache_parts.h"
#include "core/parts/stepped_work.h"
#include "core/requests/block_requests.h"
#include "core/requests/operator_results.h"
#include "core/requests/requests.h"
#include "core/requests/session_limits.h"

namespace pando {

// The cache: it knows which token prefixes are in which pages, who keeps them
// there, and what is evicted when room is needed. It deals in page ids; the
// bytes are elsewhere. A request takes two calls:
//
//   // Finds the longest cached prefix, keeps it from eviction, and reserves
//   // pages for the rest of the prompt.
//   auto match = cache.Match({.session = session, .ns = ns, .tokens = prompt,
//                             .lock = true, .reserve_tokens = room});
//   // ... the worker computes the rest into match->reserved ...
//   // Publishes the pages, and gives up the lock.
//   cache.Insert({.session = session, .ns = ns, .tokens = rest_of_prompt,
//                 .pages = match->reserved, .anchor = match->lock,
//                 .lock_action = LockAction::kUnlock});
//
// Owned by Server. Thread-safe: a monitor with one mutex, the only lock on the
// data path. What the mutex guards (CacheParts) is single-threaded code that
// knows of no mutex. The cache has no clock and no threads: time is an argument
// of ExpireSessions, and stands still in between.
//
// A call that fails changes nothing; its status carries a Reason. A session
// that is unknown, has ended or is of an earlier epoch gives SESSION_LOST.
//
// Invariants, beside those of the parts: each page is in exactly one state; a
// sealed page is in exactly one node; each lock and each reserved page belongs
// to one session that lives, or ends in steps; each lock names one live node.
class PrefixCache {
 public:
  struct Options {
    uint32_t page_tokens;     // at least 1
    uint32_t capacity_pages;  // at least 2; page 0 is padding
    EvictionPolicyKind eviction_policy = EvictionPolicyKind::kLru;
    ReuseOptions reuse = {};
    // With fewer than `low` free pages, EvictToWatermark evicts until `high`
    // are free.
    uint32_t low_free_pages = 0;
    uint32_t high_free_pages = 0;
    std::vector<QuotaClass> quota_classes = {};
    SessionLimits session_limits = {};
    // Events tell of the hits of a page from this one on: inserts of other
    // requests that contain it. 0: of none.
    uint32_t first_told_hit = 0;
    BlockOptions blocks = {};
    // Called for each wait that ends, unless it was cancelled. It is called
    // outside the mutex, by the thread that ended the wait, maybe before the
    // Match that began the wait has returned. Must be set when matches wait.
    std::function<void(WaitId, PendingOutcome)> on_wait_over = nullptr;
    // Sessions, or the quarantine of pages, have ended, and more is to be
    // released than goes in one step: the rest goes as the caller takes the
    // steps of SessionEnds. Called outside the mutex, by the thread that ended
    // them. Null: the call that ends them takes all steps.
    std::function<void()> on_ends = nullptr;
    // Gives nanoseconds of a time that only goes forward. Null: no operation is
    // timed.
    int64_t (*clock)() = nullptr;
  };

  explicit PrefixCache(const Options& options);
  ~PrefixCache();

  // Finds the longest cached prefix of a prompt. On request it locks the
  // prefix, and reserves pages for the rest, evicting as needed: all in one
  // step, or nothing. On request it begins to wait instead, while another call
  // computes the page after the match: then `wait` of the result is set, and
  // the caller asks again once on_wait_over has named that wait.
  absl::StatusOr<MatchResult> Match(const MatchRequest& request);
  // How much of a prompt is cached, for a scheduler that ranks its queue.
  // Changes nothing, not even recency.
  absl::StatusOr<PrefixScore> Score(const PrefixQuery& query);
  // Whether a call waits for the page after this lock of this session.
  bool IsAwaited(SessionId session, LockId lock);
  // Ends the wait of a match. Returns false when it was over already.
  bool CancelWait(WaitId wait);
  // Publishes pages under a prefix: from now on they are immutable and others
  // find them. The caller's writes to them must be complete. Pages whose tokens
  // were cached already are freed, and the result names the cache's pages for
  // them.
  absl::StatusOr<InsertResult> Insert(const InsertRequest& request);
  // Locks the longest cached prefix, which may be empty. Unlock releases locks
  // of the session: all of those named, or none.
  absl::StatusOr<LockResult> Lock(const LockRequest& request);
  absl::Status Unlock(SessionId session, std::span<const LockId> locks,
                      RequestId request_id = {});

  // Reserves pages for the session, evicting as needed: all that are asked for,
  // or as many as there is room for if that is no fewer than min_pages; else
  // none. Free gives reserved pages back: all or none.
  absl::StatusOr<AllocateResult> Allocate(const AllocateRequest& request);
  absl::Status Free(SessionId session, std::span<const PageId> pages,
                    RequestId request_id = {});
  // Evicts a bounded number of the pages that the watermark asks for, none that
  // takes a class below its floor. Returns how many; call it again until that
  // is 0.
  uint32_t EvictToWatermark();
  // Changes the watermark of the options.
  void SetWatermark(uint32_t low_free_pages, uint32_t high_free_pages);
  // Changes floors and caps. Nothing is evicted for that: a class that is above
  // its new cap is refused pages, or makes room, when it asks for more.
  // REQUIRES: the classes and their patterns are those of the options.
  void SetQuotas(const std::vector<QuotaClass>& classes);
  // Changes what a session may have, also for sessions that are open. One that
  // has more keeps it, and gets no more.
  void SetSessionLimits(const SessionLimits& limits);

  // A new session: one worker process, or with `is_internal` a part of pandod
  // itself. REQUIRES: `id` is random, so that it cannot be guessed, and not 0.
  SessionNumber OpenSession(SessionId id, std::string client_name,
                            bool is_internal = false);
  // A writer maps the pool for the session, and may write to its reserved pages
  // from now on. No id: it cannot be watched, and its end is not reported.
  absl::Status AttachSession(SessionId id, std::optional<WriterId> writer);
  // The worker ends its session and writes no more: its locks are released and
  // its pages are free. If the session was lost already, its pages in
  // quarantine are. As with all ends of sessions, Options::on_ends says when
  // that is done.
  void CloseSession(SessionId id);
  // The liveness stream broke: the session is lost at `lost_at` unless it is
  // resumed before; at once if all its writers are gone.
  void SuspendSession(SessionId id, absl::Time lost_at);
  absl::StatusOr<SessionNumber> ResumeSession(SessionId id);
  // OK while the session lives.
  absl::Status CheckSession(SessionId id);
  // Counts memory that is kept elsewhere for the session, or with SessionId()
  // for calls that name none, until what it returns is destroyed. SESSION_LIMIT
  // if that is more than it may have.
  absl::StatusOr<KeptBytes> Keep(SessionId id, uint64_t bytes);
  // A writer is gone. When it was the last one of a session, pages that the
  // session left in quarantine are free; a session whose stream has broken too
  // is lost at once and its pages are free.
  void WriterGone(WriterId writer);
  // Ends the sessions that are lost by `now`, whose pages go to quarantine, and
  // frees the pages there that are not written to any more: the writers that
  // are watched are gone, and for the others `quarantine` has passed.
  ExpiredSessions ExpireSessions(absl::Time now, absl::Duration quarantine);

  // From now on what enters and leaves the cache is logged, or is not any more.
  // Both are idempotent.
  void StartEvents();
  void StopEvents();
  // Swaps what happened since the last call into `events`. After a start, and
  // after a call that came much too late, that is AllCleared, and then, call by
  // call, what is cached, about `nodes` nodes each time, and what changed
  // meanwhile. Returns false while there is more of that.
  bool TakeEvents(std::vector<RawEvent>& events,
                  uint32_t nodes = kStepToldNodes);
  // The same for a second reader that wants the changes alone: after AllCleared
  // only later events follow, not what is cached. Logging for it begins with
  // the first call.
  void TakeChurn(std::vector<RawEvent>& events);

  // Match, Insert, Allocate and, as Freeing and Unlocking, Free and Unlock take
  // steps, so that other calls run in between; few pages or locks take one. A
  // caller with other work takes the steps itself. What the request refers to
  // outlives them.
  Matching Start(const MatchRequest& request) const;
  Inserting Start(const InsertRequest& request) const;
  Allocation Start(const AllocateRequest& request) const;

  // Work for operators, in steps, too:
  //
  //   LockListing listing(limit, session);
  //   while (!cache.Step(listing)) ServeOthers();
  //
  // See eviction_work.h, policy_change.h, listings.h, explanation.h and
  // tree_dump.h; and proto/pando/v1/admin.proto for what is told.
  bool Step(SteppedWork& work);
  // Takes all steps.
  void Finish(SteppedWork& work) {
    while (!Step(work)) continue;
  }
  // The same, and returns the finished work.
  template <typename Work>
  Work Run(Work work) {
    Finish(work);
    return work;
  }
  // EvictionWork: returns how many pages it evicted.
  uint32_t Evict(uint32_t pages);
  // PolicyChange: returns the policy before.
  EvictionPolicyKind SetEvictionPolicy(EvictionPolicyKind policy);
  // FlushWork.
  FlushResult Flush();
  FlushResult FlushNamespace(const NamespaceKey& key);
  FlushResult FlushNamespace(NamespaceNumber number);
  NamespaceList ListNamespaces(uint32_t limit);
  SessionList ListSessions(uint32_t limit);
  // The locks of one session, or of all.
  LockList ListLocks(uint32_t limit, std::optional<SessionNumber> session);
  // LockRelease: returns how many it released.
  absl::StatusOr<uint32_t> ReleaseLocks(SessionNumber session);
  // The lost sessions with pages in quarantine, the oldest first.
  QuarantineList ListQuarantine(uint32_t limit);
  // QuarantineRelease: frees what a lost session has in quarantine although its
  // writers may still be writing to it. Returns how many pages that were.
  absl::StatusOr<uint32_t> FreeQuarantine(SessionNumber session);
  MatchExplanation ExplainMatch(const NamespaceKey& ns,
                                std::span<const Token> tokens);
  // The nodes of one namespace, or of all.
  TreeDump DumpTree(uint32_t limit, std::optional<NamespaceNumber> ns);

  // Copies the tree in parts, for the console: the mutex is held for some
  // thousand nodes at once. Begin with block 0 and go on with next_block until
  // that is 0. A node that changes meanwhile is in the copy as it was before
  // the change, after it, or both; CopyNodes fetches parents that are missing.
  TreePart CopyTree(uint32_t block);
  // Copies those of the nodes that still exist.
  std::vector<NodeCopy> CopyNodes(std::span<const NodeHandle> handles);
  // The first tokens of a node, at most `limit`; empty when it is gone.
  std::vector<Token> CopyTokens(NodeHandle handle, uint32_t limit);

  // From now on nothing new is admitted: Match with a lock, Lock, and Allocate
  // of a session without locks and reserved pages give DRAINING, except for
  // repeats, which get their first answer. Everything else still works, so that
  // admitted requests can finish. It cannot be undone.
  void BeginDrain();
  // DRAINING from then on.
  absl::Status CheckIsAdmitting();

  CacheStats Stats();
  // No session has locked or reserved anything. What is in quarantine may be
  // held for ever.
  bool IsIdle();
  // Verifies the next part of the invariants. None: there is more to verify.
  // After the last part, a sentence for each invariant that does not hold; the
  // next call begins anew.
  std::optional<std::vector<std::string>> CheckInvariantsStep();
  // Takes all steps.
  std::vector<std::string> CheckInvariants();

  uint32_t page_tokens() const { return options_.page_tokens; }
  uint32_t capacity_pages() const { return options_.capacity_pages; }

 private:
  friend class KeptBytes;
  friend class DamagedCache;  // tests break what CheckInvariants finds

  // Holds the mutex; then tells of the waits that ended meanwhile. The only way
  // to take the mutex.
  class Hold;

  // Takes a step of SessionEnds; if there are more, on_ends sees to them.
  void BeginEnds();
  void Release(SessionId id, uint64_t bytes);

  const Options options_;
  const QuotaClasses quotas_;

  absl::Mutex mutex_;
  CacheParts parts_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<InvariantCheck> check_ ABSL_GUARDED_BY(mutex_);  // under way
};

}  // namespace pando

#endif  // PANDO_CORE_PREFIX_CACHE_H_
