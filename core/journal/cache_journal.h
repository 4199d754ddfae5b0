#ifndef PANDO_CORE_JOURNAL_CACHE_JOURNAL_H_
#define PANDO_CORE_JOURNAL_CACHE_JOURNAL_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/time/time.h"
#include "base/ids.h"
#include "core/eviction/eviction_policy.h"
#include "core/eviction/ghost_list.h"
#include "core/journal/event_log.h"
#include "core/journal/measurements.h"
#include "core/journal/stats.h"
#include "core/journal/tree_description.h"
#include "core/nodes/node.h"
#include "core/requests/eviction_reason.h"
#include "core/tree/prefix_search.h"

namespace pando {

// Records what happens in the cache: counts and measurements for metrics,
// events for watchers, and recent evictions for explanations. It decides
// nothing.
//
// Owned by CacheParts; not thread-safe. A note costs some nanoseconds and
// copies no tokens.
class CacheJournal {
 public:
  // For a cache of `capacity_pages` pages, page 0 included. Events report the
  // hits of a page from its hit number `first_told_hit` on; 0: events report no
  // hits.
  CacheJournal(uint32_t capacity_pages, uint32_t quota_classes,
               uint32_t first_told_hit);

  // The time that evictions, locks and sessions are dated with; it stands still
  // between two calls of PrefixCache::ExpireSessions.
  absl::Time time() const { return time_; }
  void set_time(absl::Time time) { time_ = time; }

  CacheCounters& counters() { return counters_; }
  const CacheCounters& counters() const { return counters_; }
  Measurements& measured() { return measured_; }
  const Measurements& measured() const { return measured_; }

  // Notes what a match found. If `is_counted`, its tokens are added to the
  // counters, too; those of a match that does not touch are not. `loaded_pages`
  // of its pages are used for the first time since they came from a tier.
  void NoteMatch(const FoundPrefix& found, const PrefixQuery& query,
                 uint32_t quota_class, uint32_t page_tokens, bool is_counted,
                 uint32_t loaded_pages);
  // Notes that `end` and its ancestors are about to be used, at `now` (a
  // RadixTree::time, in tenths of a second).
  void NoteReuse(const Node& end, uint32_t now);
  // Notes that an insert has counted a hit of `end` and its ancestors.
  void NoteHit(const Node& end);
  void NoteRejectedQuota(uint32_t quota_class);
  void NoteLockEnd(LockEnd end, absl::Time taken_at);

  // Notes that pages entered the tree as the new leaf `leaf`.
  void NoteStored(const Node& leaf);
  // Notes that `leaf` is about to lose the pages after its first `kept_pages`,
  // at `now` (a RadixTree::time, in tenths of a second).
  void NoteTrimmed(const Node& leaf, uint32_t kept_pages, EvictionReason reason,
                   EvictionPolicyKind policy, uint32_t page_tokens,
                   uint32_t now);
  // Notes that the pages that NoteTrimmed announced are free now.
  void NoteEvicted(std::span<const PageId> pages, EvictionReason reason);
  // Notes that nothing is cached any more.
  void NoteEmptied() { events_.Cleared(); }

  // Finds the last eviction of a run whose first page had the tokens `page` and
  // came after `node`, or, if `node` is null, at the start of a prompt in `ns`.
  // None if it is not remembered.
  std::optional<GhostList::Ghost> FindEvicted(
      const NamespaceKey& ns, const Node* node,
      std::span<const Token> page) const;

  // Start and stop the log of what enters and leaves the tree, for TakeEvents.
  void StartEvents() { events_.Start(); }
  void StopEvents();
  // See the functions of the same names in PrefixCache.
  bool TakeEvents(const RadixTree& tree, uint32_t nodes,
                  std::vector<RawEvent>& events);
  void TakeChurn(std::vector<RawEvent>& events);

 private:
  uint64_t& EvictedPages(EvictionReason reason);

  const uint32_t capacity_pages_;
  const uint32_t first_told_hit_;
  absl::Time time_ = absl::UnixEpoch();
  CacheCounters counters_;
  Measurements measured_;
  EventLog events_;  // for watchers: what is cached, then what changes
  // Set while it is told what is cached.
  std::optional<TreeDescription> description_;
  EventLog churn_;  // for the regret meter: only what changes
  GhostList ghosts_;
};

}  // namespace pando

#endif  // PANDO_CORE_JOURNAL_CACHE_JOURNAL_H_
