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
#include "core/nodes/page_ledger.h"
#include "core/operators/invariants.h"
#include "core/operators/tree_copy.h"
#include "core/parts/cache_parts.h"
#include "core/parts/stepped_work.h"
#include "core/requests/block_requests.h"
#include "core/requests/operator_results.h"
#include "core/requests/requests.h"
#include "core/requests/session_limits.h"

namespace pando {

// The cache: it knows which token prefixes are in which pages, which sessions
// keep them there, and what is evicted when room is needed. It handles page ids
// only; the bytes are in the KvPool. A request takes two calls:
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
// A call that fails changes nothing; its status carries a Reason. A call for a
// session that is unknown, has ended or was lost with an earlier process fails
// with SESSION_LOST.
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
    // Events report the hits of a page from its hit of this number on; 0:
    // events report no hits. A hit is an insert by another request that
    // contains the page.
    uint32_t first_told_hit = 0;
    BlockOptions blocks = {};
    // Memory for the ledger of pages, which may outlive the process, and the id
    // of the memory of pages that it describes (PageLedger::Pool::memory_id).
    // If it is empty, there is no such ledger.
    std::span<std::byte> ledger = {};
    uint64_t ledger_pool = 0;
    // Whether the sessions in the ledger may go on. If not, they are lost.
    bool keeps_sessions = true;
    // The epoch, unless the ledger has one whose sessions go on.
    uint64_t epoch = 0;
    // The cache calls this for each wait that ends without being cancelled:
    // outside the mutex, on the thread that ended the wait, perhaps before the
    // Match that began the wait has returned. It must be set if any match
    // waits.
    std::function<void(WaitId, PendingOutcome)> on_wait_over = nullptr;
    // The cache calls this when sessions end, or pages leave quarantine, and
    // one step cannot release all that they held. The owner then runs a
    // SessionEnds to release the rest. The call comes outside the mutex, on the
    // thread that ended the sessions. If this is null, the call that ends them
    // takes all steps itself.
    std::function<void()> on_ends = nullptr;
    // Returns a monotonic time in nanoseconds. If it is null, no operation is
    // timed.
    int64_t (*clock)() = nullptr;
  };

  explicit PrefixCache(const Options& options);
  ~PrefixCache();

  // Names the sessions with their locks, handles and page ids. If sessions of
  // an earlier process go on, it is the epoch of that process.
  uint64_t epoch() const { return epoch_; }
  // A session of an earlier process that goes on.
  struct KeptSession {
    SessionId id;
    std::string owner;  // as SetSessionOwner got it
    std::vector<WriterId> writers;
  };
  // Returns these sessions. They live until they are suspended and lost.
  const std::vector<KeptSession>& kept_sessions() const {
    return kept_sessions_;
  }

  // Finds the longest cached prefix of a prompt. On request it also locks the
  // prefix and reserves pages for the rest, evicting as needed; it does all of
  // that or none. On request, if another call computes the page after the
  // match, it begins a wait instead and returns at once: it locks and reserves
  // nothing and sets `wait` in the result, and the caller calls again once
  // on_wait_over has named that wait.
  absl::StatusOr<MatchResult> Match(const MatchRequest& request);
  // Returns how much of a prompt is cached, for a scheduler that ranks its
  // queue. It changes nothing, not even recency.
  absl::StatusOr<PrefixScore> Score(const PrefixQuery& query);
  // Whether a call waits for the page after this lock of this session.
  bool IsAwaited(SessionId session, LockId lock);
  // Ends the wait of a match. Returns false if the wait was over already.
  bool CancelWait(WaitId wait);
  // Publishes pages under a prefix: from now on they are immutable and others
  // find them. The caller's writes to them must be complete. If some of the
  // tokens were cached already, the caller's pages for them are freed, unless
  // it asks to keep them, and the result names the cache's own pages instead.
  absl::StatusOr<InsertResult> Insert(const InsertRequest& request);
  // Lock locks the longest cached prefix, which may be empty. Unlock releases
  // the named locks of the session, all or none; LOCK_UNKNOWN if one of them is
  // not the session's.
  absl::StatusOr<LockResult> Lock(const LockRequest& request);
  absl::Status Unlock(SessionId session, std::span<const LockId> locks,
                      RequestId request_id = {});

  // Allocate reserves pages for the session, evicting as needed: all that the
  // request names, or with min_pages as many as there is room for but no fewer
  // than min_pages. If it cannot, it reserves none and fails with
  // POOL_EXHAUSTED, QUOTA_EXCEEDED or SESSION_LIMIT. Free gives reserved pages
  // back, all or none.
  absl::StatusOr<AllocateResult> Allocate(const AllocateRequest& request);
  absl::Status Free(SessionId session, std::span<const PageId> pages,
                    RequestId request_id = {});
  // Evicts some of the pages that the watermark asks for, but takes no class
  // below its floor. Returns how many pages it evicted, a bounded number; call
  // it again until it returns 0.
  uint32_t EvictToWatermark();
  // Changes the watermark of the options.
  void SetWatermark(uint32_t low_free_pages, uint32_t high_free_pages);
  // Changes floors and caps. Nothing is evicted for that: a class that is above
  // its new cap is refused pages, or makes room, when it asks for more.
  // REQUIRES: the classes and their patterns are those of the options.
  void SetQuotas(const std::vector<QuotaClass>& classes);
  // The same for the quotas of blocks, and changes BlockOptions::write_limit.
  void SetBlockLimits(const std::vector<BlockQuota>& quotas,
                      absl::Duration write_limit);
  // Changes what a session may hold, for open sessions too. A session that
  // holds more than a new limit keeps it, but gets nothing more.
  void SetSessionLimits(const SessionLimits& limits);

  // Opens a session for one worker process, or with `is_internal` for a part of
  // pandod itself. REQUIRES: `id` is random, so that it cannot be guessed, and
  // not 0.
  SessionNumber OpenSession(SessionId id, std::string client_name,
                            bool is_internal = false);
  // Notes that a writer maps the pool for the session: it may write to the
  // session's reserved pages from now on. Pass no id for a writer that cannot
  // be watched; its end is then not reported by WriterGone.
  absl::Status AttachSession(SessionId id, std::optional<WriterId> writer);
  // Notes whose session it is: the name of a credential. KeptSession has it.
  void SetSessionOwner(SessionId id, const std::string& owner);
  // The worker ends its session and writes no more: its locks are released and
  // its pages are free. If the session was lost already, its quarantined pages
  // become free. As at every end of a session, the release may take several
  // steps (Options::on_ends).
  void CloseSession(SessionId id);
  // Notes that the liveness stream broke: the session is lost at `lost_at`
  // unless ResumeSession comes first. If all its writers are gone, it is lost
  // at once.
  void SuspendSession(SessionId id, absl::Time lost_at);
  absl::StatusOr<SessionNumber> ResumeSession(SessionId id);
  // Returns OK while the session lives, else SESSION_LOST.
  absl::Status CheckSession(SessionId id);
  // Counts `bytes` of memory that the caller keeps outside the cache for the
  // session, until the returned object is destroyed. SessionId() stands for all
  // calls that name no session. SESSION_LIMIT if the session would have more
  // bytes than it may.
  absl::StatusOr<KeptBytes> Keep(SessionId id, uint64_t bytes);
  // Notes that a writer is gone. If it was the last writer of a session, the
  // pages that the session left in quarantine become free; if that session's
  // stream is broken but it is not lost yet, it is lost at once and its pages
  // become free.
  void WriterGone(WriterId writer);
  // Ends the sessions that are lost by `now`. Their reserved pages go to
  // quarantine if their writers may still write to them. Also frees the
  // quarantined pages that are safe: all watched writers are gone, and the time
  // limit for unwatched writers, `quarantine` after the loss, has passed.
  ExpiredSessions ExpireSessions(absl::Time now, absl::Duration quarantine);

  // Start and stop the log of what enters and leaves the cache. Both are
  // idempotent.
  void StartEvents();
  void StopEvents();
  // Swaps the events since the last call into `events`. After StartEvents, or
  // if so many events came between two calls that the log dropped them, it
  // begins anew: with AllCleared, and then, over several calls, all that is
  // cached, about `nodes` nodes a call, mixed with what changes meanwhile.
  // Returns false while some of what is cached has not been told yet.
  bool TakeEvents(std::vector<RawEvent>& events,
                  uint32_t nodes = kStepToldNodes);
  // The same for a second reader that wants only the changes: after AllCleared
  // come only later events, not what is cached already. The first call starts
  // this second log.
  void TakeChurn(std::vector<RawEvent>& events);

  // Match, Insert, Allocate, Free and Unlock work in steps, so that other calls
  // can run in between; a call with few pages or locks takes one step. A caller
  // that has other work takes the steps itself: of the work that Start returns,
  // or of a Freeing or Unlocking that it makes. The memory that the request
  // refers to must outlive the work.
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
  // Takes all steps, and returns the finished work.
  template <typename Work>
  Work Run(Work work) {
    Finish(work);
    return work;
  }
  // Runs an EvictionWork. Returns how many pages it evicted.
  uint32_t Evict(uint32_t pages);
  // Runs a PolicyChange. Returns the policy that was set before.
  EvictionPolicyKind SetEvictionPolicy(EvictionPolicyKind policy);
  // Runs a FlushWork, for everything or for one namespace.
  FlushResult Flush();
  FlushResult FlushNamespace(const NamespaceKey& key);
  FlushResult FlushNamespace(NamespaceNumber number);
  NamespaceList ListNamespaces(uint32_t limit);
  SessionList ListSessions(uint32_t limit);
  // The locks of one session, or of all.
  LockList ListLocks(uint32_t limit, std::optional<SessionNumber> session);
  // Runs a LockRelease. Returns how many locks it released.
  absl::StatusOr<uint32_t> ReleaseLocks(SessionNumber session);
  // The lost sessions with pages in quarantine, the oldest first.
  QuarantineList ListQuarantine(uint32_t limit);
  // Runs a QuarantineRelease: frees what a lost session has in quarantine, even
  // though its writers may still be writing to it. Returns the number of pages,
  // plus one for each block lock and each reserved block.
  absl::StatusOr<uint32_t> FreeQuarantine(SessionNumber session);
  MatchExplanation ExplainMatch(const NamespaceKey& ns,
                                std::span<const Token> tokens);
  // The nodes of one namespace, or of all.
  TreeDump DumpTree(uint32_t limit, std::optional<NamespaceNumber> ns);

  // Copies the tree in parts, for the console: the mutex is held for some
  // thousand nodes at once. Begin with block 0 and go on with next_block until
  // that is 0. A node that changes between two parts is in the copy as it was
  // before the change, as it is after it, or both ways. Parents may be missing;
  // CopyNodes fetches them.
  TreePart CopyTree(uint32_t block);
  // Copies those of the nodes that still exist.
  std::vector<NodeCopy> CopyNodes(std::span<const NodeHandle> handles);
  // The first tokens of a node, at most `limit`; empty when it is gone.
  std::vector<Token> CopyTokens(NodeHandle handle, uint32_t limit);

  // The configuration of the model that has computed the pages, as the ledger
  // has it: NoteModel writes it there. KeptModel returns an empty text if there
  // is none, or no ledger. REQUIRES: it has at most PageLedger::kMaxModelBytes.
  void NoteModel(const std::string& model);
  std::string KeptModel();

  // From now on nothing new is admitted: Match with a lock and Lock fail with
  // DRAINING, and so do Allocate, BlockCache::Acquire and BlockCache::Reserve
  // of a session that holds nothing. Only repeats still get their first answer.
  // Everything else still works, so that admitted requests can finish. It
  // cannot be undone.
  void BeginDrain();
  // Returns OK until BeginDrain, then DRAINING.
  absl::Status CheckIsAdmitting();

  CacheStats Stats();
  // Returns whether no session holds a lock or a reservation. Quarantine does
  // not count, because it may last for ever.
  bool IsIdle();
  // Verifies the next part of the invariants. Returns nothing while there is
  // more to verify. After the last part it returns a sentence for each
  // invariant that does not hold, and the next call begins anew.
  std::optional<std::vector<std::string>> CheckInvariantsStep();
  // Takes all steps.
  std::vector<std::string> CheckInvariants();

  uint32_t page_tokens() const { return options_.page_tokens; }
  uint32_t capacity_pages() const { return options_.capacity_pages; }

 private:
  friend class KeptBytes;
  friend class DamagedCache;  // tests break what CheckInvariants finds

  // Holds the mutex while it lives; after the release it reports the waits that
  // ended meanwhile. All code takes the mutex this way.
  class Hold;

  SegmentArena* arena() const;
  // Takes over what an earlier process has left in the ledger.
  void Recover() ABSL_NO_THREAD_SAFETY_ANALYSIS;
  // Takes one step of SessionEnds. If there are more, it calls on_ends, or
  // takes them all if on_ends is null.
  void BeginEnds();
  void Release(SessionId id, uint64_t bytes);

  const Options options_;
  const QuotaClasses quotas_;
  const std::unique_ptr<PageLedger> ledger_;  // null: none
  uint64_t epoch_;
  std::vector<KeptSession> kept_sessions_;

  absl::Mutex mutex_;
  CacheParts parts_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<InvariantCheck> check_ ABSL_GUARDED_BY(mutex_);  // under way
};

}  // namespace pando

#endif  // PANDO_CORE_PREFIX_CACHE_H_
