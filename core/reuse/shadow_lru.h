#ifndef PANDO_CORE_REUSE_SHADOW_LRU_H_
#define PANDO_CORE_REUSE_SHADOW_LRU_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "core/reuse/history.h"
#include "core/reuse/run.h"

namespace pando {

// The shadow: which pages an LRU cache of the same size would hold now. These
// are the newest pages of History; of the oldest run among them, perhaps only
// its front. With it, an order of eviction can be compared with LRU page by
// page, and is bound to LRU when it does worse. The shadow knows no locks and
// no quotas.
//
// Owned by ReuseLearner; not thread-safe. Each call is O(1) amortised.
class ShadowLru {
 public:
  // `history` outlives this.
  ShadowLru(const History* history, uint32_t capacity_pages)
      : history_(history), capacity_(capacity_pages) {}

  // Notes that a run was appended to the history. Calls `evicted` for each run
  // that LRU evicts completely to make room for it.
  void Appended(RunLink link, absl::FunctionRef<void(RunLink)> evicted);
  // Notes that a run of `pages` pages is about to leave the history, for good
  // or to be appended again.
  void Leaves(RunLink link, uint32_t pages);
  // The same for the first `pages` pages of a ghost that has more.
  void FrontLeaves(RunLink ghost, uint32_t pages);
  // Notes that a run was divided into `front`, with its first `front_pages`
  // pages, and `tail`. One of the two is new in the history, and its Run is a
  // copy of the other's.
  void Divided(RunLink front, uint32_t front_pages, RunLink tail);
  // Notes that a cached run loses its pages after the first `kept`, without
  // becoming a ghost.
  void Shrinks(RunLink link, uint32_t kept);

  // Notes that a run became a ghost: it was evicted. `is_in_turn` says that
  // LRU's order chose it.
  void Evicted(RunLink ghost, bool is_in_turn);
  // Notes that a ghost is about to be forgotten: the pages of it that the
  // shadow holds count as lost.
  void Forgets(RunLink ghost) { Gain(-int64_t{PagesOf(ghost)}); }

  // Counts a request for `pages` pages.
  void CountRequest(uint32_t pages) {
    requested_ += pages;
    in_turn_ = 0;
  }
  // Counts that the request used the first `pages` pages of a run. They are
  // hits of the cache if the run is cached, and hits of LRU as far as the
  // shadow holds them.
  void CountUse(RunLink link, uint32_t pages);
  // Counts that the request used pages which both the cache and LRU hold.
  void CountCommonUse(uint32_t pages) {
    hits_ += pages;
    hits_of_cache_ += pages;
  }

  // Whether the gain so far allows to evict pages that LRU would keep: debt()
  // without the part evicted in turn is below debt_limit(); see docs/design.md.
  bool MayOwe() const;

  // Whether the shadow holds the whole run, and others that are older.
  bool HoldsNotLast(RunLink link) const {
    return history_->At(link).is_in_shadow && link != boundary_;
  }

  // Hits of LRU, in pages.
  uint64_t hits() const { return hits_; }
  // Pages that requests asked for.
  uint64_t requested() const { return requested_; }
  // Hits of the cache, in pages.
  uint64_t hits_of_cache() const { return hits_of_cache_; }
  // Hits of the cache above those of LRU, in pages; capped at the capacity.
  int64_t gain() const { return gain_; }
  // Pages that LRU holds and the cache does not.
  uint64_t debt() const { return debt_; }
  // The order may differ from LRU while the debt, without the part evicted in
  // turn, is below this many pages.
  double debt_limit() const;

 private:
  // How many pages of a run are in the shadow.
  uint32_t PagesOf(RunLink link) const {
    return PagesOf(link, history_->At(link).pages);
  }
  uint32_t PagesOf(RunLink link, uint32_t pages) const;
  void Gain(int64_t pages);
  // Takes `pages` pages of a run out of the counts of the shadow.
  void CountOut(RunLink link, uint32_t pages);
  void SetBoundary(RunLink link);

  const History* const history_;
  const uint32_t capacity_;
  // The number of pages in the shadow.
  uint64_t pages_ = 0;
  // The oldest run of the shadow, and how many of its pages are in it.
  RunLink boundary_ = kNoRun;
  uint32_t boundary_pages_ = 0;
  uint64_t hits_ = 0;
  uint64_t hits_of_cache_ = 0;
  uint64_t requested_ = 0;
  int64_t gain_ = 0;
  uint64_t debt_ = 0;
  // The part of the debt that was evicted in LRU's order since the last request
  // began. LRU will evict it, too, once the pages arrive for which room was
  // made.
  uint64_t in_turn_ = 0;
};

}  // namespace pando

#endif  // PANDO_CORE_REUSE_SHADOW_LRU_H_
