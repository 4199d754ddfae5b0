#ifndef PANDO_TESTS_CORE_REFERENCE_CACHE_H_
#define PANDO_TESTS_CORE_REFERENCE_CACHE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/ids.h"
#include "core/journal/stats.h"
#include "core/prefix_cache.h"
#include "core/requests/errors.h"
#include "core/requests/namespace_key.h"
#include "core/requests/requests.h"
#include "tests/core/reference_flights.h"
#include "tests/core/reference_index.h"
#include "tests/core/reference_quota.h"
#include "tests/core/reference_reuse.h"

namespace pando {

// A naive implementation of PrefixCache that says which answers PrefixCache
// must give. The class uses lists and maps that are searched from end to end,
// and has no tree, no free list and no order of eviction.
//
// The real cache chooses the ids of pages, locks and waits. The real cache
// therefore answers first, and its choice is an argument here. A choice that
// the real cache was not free to make gives an INTERNAL status. Handles are not
// shared: a handle of the real cache means nothing here.
class ReferenceCache {
 public:
  explicit ReferenceCache(const PrefixCache::Options& options);

  // The ids that the real cache chose in its answer.
  struct Choice {
    LockId lock;
    std::vector<PageId> pages;
    WaitId wait;
  };

  absl::StatusOr<MatchResult> Match(const MatchRequest& request,
                                    const Choice& choice);
  absl::StatusOr<PrefixScore> Score(const PrefixQuery& query) const;
  bool CancelWait(WaitId wait);
  absl::StatusOr<InsertResult> Insert(const InsertRequest& request);
  absl::StatusOr<LockResult> Lock(const LockRequest& request, LockId choice);
  absl::Status Unlock(SessionId session, std::span<const LockId> locks,
                      RequestId request_id);
  absl::StatusOr<AllocateResult> Allocate(const AllocateRequest& request,
                                          const Choice& choice);
  absl::Status Free(SessionId session, std::span<const PageId> pages,
                    RequestId request_id);
  uint32_t Evict(uint32_t pages);
  uint32_t EvictToWatermark();
  FlushResult Flush();
  FlushResult FlushNamespace(const NamespaceKey& ns);
  EvictionPolicyKind SetEvictionPolicy(EvictionPolicyKind policy);
  // Starts to learn what the policy reuse needs, or forgets all of it.
  void SetLearning(bool learns);

  void OpenSession(SessionId id);
  absl::Status AttachSession(SessionId id, std::optional<WriterId> writer);
  void CloseSession(SessionId id);
  void SuspendSession(SessionId id, absl::Time lost_at);
  absl::Status ResumeSession(SessionId id);
  void WriterGone(WriterId writer);
  absl::StatusOr<uint32_t> FreeQuarantine(SessionNumber number);
  void ExpireSessions(absl::Time now, absl::Duration quarantine);

  CacheStats Stats() const;
  // Returns the waits that ended since the last call, in order.
  std::vector<ReferenceFlights::Over> TakeOver() { return flights_.TakeOver(); }

  const ReferenceIndex& index() const { return index_; }
  bool IsLive(SessionId id) const { return FindSession(id) != nullptr; }
  // Return the reserved pages and the locks of a session. Both lists are empty
  // if the session is not live.
  std::vector<PageId> ReservedPages(SessionId id) const;
  std::vector<LockId> LocksOf(SessionId id) const;
  // Returns the tokens of a prompt that a lock of any session holds.
  std::vector<Token> HeldPrompt(LockId lock) const;
  // Returns the namespace of a handle, or nothing if the handle is gone.
  std::optional<NamespaceKey> NamespaceOf(const PrefixHandle& handle) const;
  // Returns the place where a call with a lock or a handle begins, or the start
  // of the prompt if both are unset or unknown.
  Place StartOf(const NamespaceKey& ns, LockId lock,
                const PrefixHandle& after) const;
  // Returns the cached pages of the longest cached prefix of `tokens` after
  // `start`.
  std::vector<PageId> CachedPages(Place start,
                                  std::span<const Token> tokens) const;

 private:
  struct ReservedPage {
    PageId id;
    size_t quota_class;
  };

  struct HeldLock {
    LockId id;
    Place place;
    std::vector<Token> prompt = {};  // held tokens, from the end of `place` on
    size_t held_tokens = 0;          // the first size; 0 once none is held
    RequestFacts request = {};
  };

  static constexpr size_t kKeptAnswers = 256;  // for each session
  enum class Call { kMatch, kInsert, kLock, kUnlock, kAllocate, kFree };
  using Result = std::variant<std::monostate, MatchResult, InsertResult,
                              LockResult, AllocateResult>;
  struct Answer {
    RequestId id;
    Call call;
    Result result;
  };

  struct Session {
    SessionId id;
    SessionNumber number;
    bool is_attached = false;
    bool has_unwatched = false;
    std::set<uint64_t> writers;  // the live ones that are watched
    std::optional<absl::Time> lost_at;
    std::vector<ReservedPage> reserved;
    std::vector<HeldLock> locks;  // oldest first
    std::deque<Answer> answers;   // oldest first
  };

  struct QuarantinedPages {
    SessionId owner;
    SessionNumber number;
    bool has_unwatched;
    std::set<uint64_t> writers;
    absl::Time until;
    std::vector<ReservedPage> pages;
  };

  const Session* FindSession(SessionId id) const;
  Session* FindSession(SessionId id);
  const HeldLock* FindLock(LockId lock) const;
  static HeldLock* FindLock(Session& session, LockId lock);

  uint32_t page_tokens() const { return options_.page_tokens; }
  uint32_t CachedCount() const;
  uint32_t LockedCount() const;
  static bool AreWritersGone(const Session& session);
  void FreeQuarantinedInTime();
  uint32_t QuarantinedCount() const;
  uint32_t ReservedCount() const;
  uint32_t FreeCount() const;
  bool IsFree(PageId page) const;

  // Returns the earlier answer to this call, or null if there was none.
  absl::StatusOr<const Answer*> FindAnswer(const Session& session, RequestId id,
                                           Call call);
  static void KeepAnswer(Session& session, RequestId id, Call call,
                         Result result);

  absl::StatusOr<Place> Start(const NamespaceKey& ns,
                              const PrefixHandle& after) const;
  size_t MaxUnits(const NamespaceKey& ns,
                  std::optional<uint32_t> max_tokens) const;
  // Does the same as index_.Extend, but makes `place` at most `max_units` long.
  std::vector<PageId> ExtendUpTo(size_t max_units, Place& place,
                                 const Units& units) const;
  // Whether another session computes `page` and a match may be that long.
  bool IsPending(const std::optional<Place>& page, size_t max_units) const;
  // Returns the page that comes first in `units` after `place`. Returns nothing
  // if that page is cached or is not a whole page.
  std::optional<Place> NextPage(const Place& place,
                                std::span<const Unit> units) const;
  absl::Status CheckInsertQuota(const Session& session, const NamespaceKey& ns,
                                std::span<const PageId> added);
  void TakeHints(const InsertRequest& request, const Place& place);
  void Relock(HeldLock& lock, const Place& to, uint32_t prompt_tokens);

  // Pages and quotas. reference_cache_pages.cc implements them.
  struct Account {
    uint32_t reserved = 0;
    uint32_t cached = 0;
    uint32_t evictable = 0;

    uint32_t used() const { return reserved + cached; }
  };
  Account AccountOf(size_t quota_class) const;
  ReferenceIndex::Filter AboveFloor(
      std::optional<size_t> quota_class = std::nullopt) const;
  absl::Status CheckOwned(const Session& session,
                          std::span<const PageId> pages) const;
  // Returns why there is no room, or nothing if there is room. `held_back`
  // evictable pages of the class are not counted as room.
  std::optional<Reason> NoRoom(size_t quota_class, uint32_t pages,
                               uint32_t held_back) const;
  absl::Status CheckRoom(size_t quota_class, uint32_t pages,
                         uint32_t held_back);
  static size_t KeptBytes(const Session& session);
  // Checks whether the session may have `locks` more locks, `pages` more
  // reserved pages and `held` more held tokens.
  absl::Status CheckLimits(const Session& session, uint32_t locks,
                           uint32_t pages, size_t held) const;
  absl::Status TakePages(Session& session, size_t quota_class, uint32_t pages,
                         const Choice& choice);
  // Evicts up to `most` pages, run by run, and returns how many it evicted.
  uint32_t EvictUpTo(uint32_t most, const ReferenceIndex::Filter& may_evict);
  uint32_t EvictRun(uint32_t most, const ReferenceIndex::Filter& may_evict,
                    uint32_t& spared);
  // Spares leaves that are retained, at most three in a row and 64 in a call.
  // Returns the leaf to evict instead.
  Place SpareRetained(Place victim, const ReferenceIndex::Filter& may_evict,
                      uint32_t& spared);
  std::optional<Place> NextVictim(
      const ReferenceIndex::Filter& may_evict) const;
  bool FlushOne(const ReferenceIndex::Filter& may_evict);
  void Release(Session& session, PageId page);
  // Ends the marks on pages that their session was to compute and will not.
  void GiveUpPages(std::span<const PageId> pages);
  void Resolve(LockId owner, PendingOutcome outcome);

  // The uses of pages. Only some uses belong to a request.
  RequestFacts BeginRequest(size_t prompt_tokens, size_t cached_tokens);
  void Touch(const Place& place, RequestFacts* facts);

  // Locks and sessions.
  absl::Status AddLock(Session& session, const Place& place, LockId id);
  void ReleaseLock(Session& session, LockId lock, PendingOutcome outcome);
  // Releases all that the session holds. Its reserved pages become free.
  void EraseSession(SessionId id);
  void EndLost(SessionId id);

  const PrefixCache::Options options_;
  const ReferenceQuota quota_;
  ReferenceIndex index_;
  ReferenceFlights flights_;
  EvictionPolicyKind policy_;
  std::optional<ReferenceReuse> reuse_;  // set while the cache learns
  uint32_t next_tick_ = 0;
  std::vector<Session> sessions_;  // oldest first
  std::vector<QuarantinedPages> quarantine_;
  absl::Time time_ = absl::UnixEpoch();  // time of the last ExpireSessions
  CacheCounters counters_;
  std::map<size_t, uint64_t> spared_leaves_;  // by quota class
  bool is_below_watermark_ = false;  // true until the high mark is reached
};

}  // namespace pando

#endif  // PANDO_TESTS_CORE_REFERENCE_CACHE_H_
