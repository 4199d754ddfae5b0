#ifndef PANDO_TESTS_CORE_REFERENCE_CACHE_H_
#define PANDO_TESTS_CORE_REFERENCE_CACHE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/ids.h"
#include "core/namespace_key.h"
#include "core/prefix_cache.h"
#include "core/requests.h"
#include "core/stats.h"

namespace pando {

// What PrefixCache must answer, worked out the naive way: a map from each
// cached prefix to its last page, searched from end to end. It has no nodes, no
// free list and no order of eviction.
//
// Which page ids and lock ids are handed out is the real cache's choice, so it
// answers first and its choice is an argument here; a choice that was not free
// to make gives an INTERNAL status.
//
// Recency is kept by page, but an access refreshes whole nodes only. Where
// nodes end follows from the past operations, so each page carries that flag.
class ReferenceCache {
 public:
  explicit ReferenceCache(const PrefixCache::Options& options)
      : options_(options) {}

  // Ids that the real cache chose in its answer.
  struct Choice {
    LockId lock;
    std::vector<PageId> pages;
  };

  absl::StatusOr<MatchResult> Match(const MatchRequest& request,
                                    const Choice& choice);
  absl::StatusOr<InsertResult> Insert(const InsertRequest& request);
  absl::StatusOr<LockResult> Lock(SessionId session, const NamespaceKey& ns,
                                  std::span<const Token> tokens, LockId choice);
  absl::Status Unlock(SessionId session, std::span<const LockId> locks);
  absl::StatusOr<std::vector<PageId>> Allocate(SessionId session,
                                               uint32_t pages,
                                               const Choice& choice);
  absl::Status Free(SessionId session, std::span<const PageId> pages);
  uint32_t Evict(uint32_t pages);
  FlushResult Flush();

  void OpenSession(SessionId id);
  absl::Status AttachSession(SessionId id);
  void CloseSession(SessionId id);
  void SuspendSession(SessionId id, absl::Time lost_at);
  absl::Status ResumeSession(SessionId id);
  void ProcessGone(SessionId id);
  void ExpireSessions(absl::Time now, absl::Duration quarantine);

  CacheStats Stats() const;

  bool IsLive(SessionId id) const { return FindSession(id) != nullptr; }
  // Empty for a session that is not live.
  std::vector<PageId> ReservedPages(SessionId id) const;
  std::vector<LockId> LocksOf(SessionId id) const;
  // The tokens that a lock, of whichever session, holds of its prompt.
  std::vector<Token> HeldPrompt(LockId lock) const;
  // The cached pages of the longest cached prefix. With a lock (which may be
  // unknown) `tokens` come after its boundary and `ns` is ignored.
  std::vector<PageId> CachedPages(const NamespaceKey& ns, LockId lock,
                                  std::span<const Token> tokens) const;

 private:
  using Prefix = std::vector<Token>;

  struct CachedPage {
    PageId id;
    uint64_t last_access = 0;
    uint32_t locks = 0;  // locks whose prefix contains this page
    bool ends_node = false;
  };
  using Pages = std::map<Prefix, CachedPage>;

  // A cached prefix of a namespace.
  struct Place {
    NamespaceKey ns;
    Prefix prefix;
  };

  struct HeldLock {
    LockId id;
    Place place;
    std::vector<Token> prompt = {};  // held, from the end of `place` on
  };

  struct Session {
    SessionId id;
    bool is_attached = false;
    bool is_process_gone = false;
    std::optional<absl::Time> lost_at;
    std::vector<PageId> reserved;
    std::vector<HeldLock> locks;  // oldest first
  };

  struct QuarantinedPages {
    SessionId owner;
    absl::Time until;
    std::vector<PageId> pages;
  };

  static bool StartsWith(const Prefix& tokens, const Prefix& prefix);

  const Session* FindSession(SessionId id) const;
  Session* FindSession(SessionId id);
  const HeldLock* FindLock(LockId lock) const;
  static HeldLock* FindLock(Session& session, LockId lock);

  Pages& PagesOf(const NamespaceKey& ns);
  const Pages* FindPages(const NamespaceKey& ns) const;
  uint32_t page_tokens() const { return options_.page_tokens; }
  uint32_t CachedCount() const;
  uint32_t LockedCount() const;
  uint32_t QuarantinedCount() const;
  uint32_t ReservedCount() const;
  uint32_t FreeCount() const;
  bool IsFree(PageId page) const;

  // Extends `start` by the tokens of at most `max_pages` pages, as far as they
  // are cached; returns the pages found.
  std::vector<PageId> Extend(Place& start, std::span<const Token> tokens,
                             size_t max_pages) const;
  // The cached pages on the way to `place`, first page first.
  std::vector<CachedPage*> PathTo(const Place& place);
  void Touch(const Place& place);
  void EndNodeAt(const Place& place);
  // Shortens `place` to the last end of a node in it.
  void DropPartialNode(Place& place);
  bool EvictOne();

  absl::Status CheckOwned(const Session& session,
                          std::span<const PageId> pages) const;
  absl::Status CheckRoom(uint32_t pages, uint32_t held_back);
  absl::Status TakePages(Session& session, uint32_t pages,
                         const Choice& choice);
  absl::Status AddLock(Session& session, const Place& place, LockId id);
  void MoveLock(HeldLock& lock, const Place& to);
  void ReleaseLock(Session& session, LockId lock);
  static void Release(Session& session, PageId page);
  // Releases what the session holds; its reserved pages become free.
  void EraseSession(SessionId id);
  void EndLost(SessionId id);

  const PrefixCache::Options options_;
  std::vector<std::pair<NamespaceKey, Pages>> namespaces_;
  std::vector<Session> sessions_;  // oldest first
  std::vector<QuarantinedPages> quarantine_;
  CacheCounters counters_;
  uint64_t now_ = 0;
};

}  // namespace pando

#endif  // PANDO_TESTS_CORE_REFERENCE_CACHE_H_
