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

// The answers that PrefixCache must give, worked out the naive way: lists and
// maps, searched from end to end; no tree, no free list, no order of eviction.
//
// Which page ids, lock ids and wait ids are handed out is the real cache's
// choice, so it answers first and its choice is an argument here; a choice that
// was not free to make gives an INTERNAL status. Handles are its own: a handle
// of the real cache means nothing here.
class ReferenceCache {
 public:
  explicit ReferenceCache(const PrefixCache::Options& options);

  // Ids that the real cache chose in its answer.
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
  // From now on what reuse needs is learnt, or it is forgotten.
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
  // The waits that are over since the last call, in order.
  std::vector<ReferenceFlights::Over> TakeOver() { return flights_.TakeOver(); }

  const ReferenceIndex& index() const { return index_; }
  bool IsLive(SessionId id) const { return FindSession(id) != nullptr; }
  // Empty for a session that is not live.
  std::vector<PageId> ReservedPages(SessionId id) const;
  std::vector<LockId> LocksOf(SessionId id) const;
  // The tokens that a lock, of whichever session, holds of its prompt.
  std::vector<Token> HeldPrompt(LockId lock) const;
  // The namespace of a handle; nothing when that is gone.
  std::optional<NamespaceKey> NamespaceOf(const PrefixHandle& handle) const;
  // Where a call with a lock or a handle begins; at the prompt's start when
  // they are none or unknown.
  Place StartOf(const NamespaceKey& ns, LockId lock,
                const PrefixHandle& after) const;
  // The cached pages of the longest cached prefix of `tokens` after `start`.
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
    std::vector<Token> prompt = {};  // held, from the end of `place` on
    size_t held_tokens = 0;          // as long as any of the prompt is held
    RequestFacts request = {};
  };

  static constexpr size_t kKeptAnswers = 256;  // of a session
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
    std::set<uint64_t> writers;  // that are watched and there
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

  // The answer given to this call before; null when there was none.
  absl::StatusOr<const Answer*> FindAnswer(const Session& session, RequestId id,
                                           Call call);
  static void KeepAnswer(Session& session, RequestId id, Call call,
                         Result result);

  absl::StatusOr<Place> Start(const NamespaceKey& ns,
                              const PrefixHandle& after) const;
  size_t MaxUnits(const NamespaceKey& ns,
                  std::optional<uint32_t> max_tokens) const;
  // index_.Extend, but `place` is at most `max_units` long in the end.
  std::vector<PageId> ExtendUpTo(size_t max_units, Place& place,
                                 const Units& units) const;
  // Whether another computes `page`, and a match may be that long.
  bool IsPending(const std::optional<Place>& page, size_t max_units) const;
  // The page that comes first in `units` after `place`; nothing when that is
  // cached, or not a whole page.
  std::optional<Place> NextPage(const Place& place,
                                std::span<const Unit> units) const;
  absl::Status CheckInsertQuota(const Session& session, const NamespaceKey& ns,
                                std::span<const PageId> added);
  void TakeHints(const InsertRequest& request, const Place& place);
  void Relock(HeldLock& lock, const Place& to, uint32_t prompt_tokens);

  // Pages and quotas, in reference_cache_pages.cc.
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
  // Why there is no room, if so. `held_back` evictable pages of the class are
  // not counted.
  std::optional<Reason> NoRoom(size_t quota_class, uint32_t pages,
                               uint32_t held_back) const;
  absl::Status CheckRoom(size_t quota_class, uint32_t pages,
                         uint32_t held_back);
  static size_t KeptBytes(const Session& session);
  // Whether the session may have so many locks, reserved pages and held
  // tokens more.
  absl::Status CheckLimits(const Session& session, uint32_t locks,
                           uint32_t pages, size_t held) const;
  absl::Status TakePages(Session& session, size_t quota_class, uint32_t pages,
                         const Choice& choice);
  // Evicts up to `most` pages, run by run; returns how many.
  uint32_t EvictUpTo(uint32_t most, const ReferenceIndex::Filter& may_evict);
  uint32_t EvictRun(uint32_t most, const ReferenceIndex::Filter& may_evict,
                    uint32_t& spared);
  // Spares leaves that are retained, three in a row and 64 in a call.
  Place SpareRetained(Place victim, const ReferenceIndex::Filter& may_evict,
                      uint32_t& spared);
  std::optional<Place> NextVictim(
      const ReferenceIndex::Filter& may_evict) const;
  bool FlushOne(const ReferenceIndex::Filter& may_evict);
  void Release(Session& session, PageId page);
  // The session that was to compute into them does not.
  void GiveUpPages(std::span<const PageId> pages);
  void Resolve(LockId owner, PendingOutcome outcome);

  // Uses, of a request if one is given.
  RequestFacts BeginRequest(size_t prompt_tokens, size_t cached_tokens);
  void Touch(const Place& place, RequestFacts* facts);

  // Locks.
  absl::Status AddLock(Session& session, const Place& place, LockId id);
  void ReleaseLock(Session& session, LockId lock, PendingOutcome outcome);
  // Releases what the session holds; its reserved pages become free.
  void EraseSession(SessionId id);
  void EndLost(SessionId id);

  const PrefixCache::Options options_;
  const ReferenceQuota quota_;
  ReferenceIndex index_;
  ReferenceFlights flights_;
  EvictionPolicyKind policy_;
  std::optional<ReferenceReuse> reuse_;  // while it is learnt
  uint32_t next_tick_ = 0;
  std::vector<Session> sessions_;  // oldest first
  std::vector<QuarantinedPages> quarantine_;
  absl::Time time_ = absl::UnixEpoch();  // of the last ExpireSessions
  CacheCounters counters_;
  std::map<size_t, uint64_t> spared_leaves_;  // by quota class
  bool is_below_watermark_ = false;           // until the high mark is reached
};

}  // namespace pando

#endif  // PANDO_TESTS_CORE_REFERENCE_CACHE_H_
