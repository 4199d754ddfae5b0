#ifndef PANDO_CORE_REUSE_SHADOW_LRU_H_
#define PANDO_CORE_REUSE_SHADOW_LRU_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "core/nodes/run.h"
#include "core/reuse/history.h"

namespace pando {

// What an LRU cache of the same size would hold, beside what is cached: the
// newest pages of History, of the oldest of these runs its front. So an order
// of eviction can be compared with LRU, page by page, and be held to it when it
// does worse. The shadow has no locks and no quotas.
//
// Owned by ReuseLearner; not thread-safe. Each step is O(1) amortised.
class ShadowLru {
 public:
  // `history` outlives this.
  ShadowLru(const History* history, uint32_t capacity_pages)
      : history_(history), capacity_(capacity_pages) {}

  // The run was appended to the history. Is called for each run that LRU evicts
  // for it, once nothing of that run is left in the shadow.
  void Appended(RunLink link, absl::FunctionRef<void(RunLink)> evicted);
  // It has so many pages and is about to leave the history, for good or to be
  // appended again.
  void Leaves(RunLink link, uint32_t pages);
  // The same for the first `pages` of a ghost, which has more.
  void FrontLeaves(RunLink ghost, uint32_t pages);
  // A run is two now, of which one is new in the history and a copy of the
  // other: its first `front_pages` and its tail.
  void Divided(RunLink front, uint32_t front_pages, RunLink tail);
  // The run, which is cached, loses all but `kept` of its pages.
  void Shrinks(RunLink link, uint32_t kept);

  // The ghost was cached until now. `is_in_turn`: LRU's order evicted it.
  void Evicted(RunLink ghost, bool is_in_turn);
  // The ghost is about to be forgotten, whatever the shadow holds of it.
  void Forgets(RunLink ghost) { Gain(-int64_t{PagesOf(ghost)}); }

  // A request asks for so many pages.
  void CountRequest(uint32_t pages) {
    requested_ += pages;
    in_turn_ = 0;
  }
  // It used the first `pages` of the run: a hit, if that is cached.
  void CountUse(RunLink link, uint32_t pages);
  // It used pages that both have.
  void CountCommonUse(uint32_t pages) {
    hits_ += pages;
    hits_of_cache_ += pages;
  }

  // Whether what was gained pays for evicting what LRU would keep: see
  // docs/design.md.
  bool MayOwe() const;

  // The pages that LRU would have found.
  uint64_t hits() const { return hits_; }
  uint64_t requested() const { return requested_; }
  // The pages that the cache found.
  uint64_t hits_of_cache() const { return hits_of_cache_; }
  // Its hits above those of LRU; counted up to the capacity.
  int64_t gain() const { return gain_; }
  // What LRU holds and the cache does not.
  uint64_t debt() const { return debt_; }
  double debt_limit() const;

 private:
  // How many pages of a run are in the shadow.
  uint32_t PagesOf(RunLink link) const {
    return PagesOf(link, history_->PagesOf(link));
  }
  uint32_t PagesOf(RunLink link, uint32_t pages) const;
  void Gain(int64_t pages);
  // Counts out a run that has left the shadow with so many pages.
  void CountOut(RunLink link, uint32_t pages);
  void SetBoundary(RunLink link);

  const History* const history_;
  const uint32_t capacity_;
  uint64_t pages_ = 0;  // in the shadow
  // The oldest run of the shadow, and how many of its pages are in it.
  RunLink boundary_ = kNoRun;
  uint32_t boundary_pages_ = 0;
  uint64_t hits_ = 0;
  uint64_t hits_of_cache_ = 0;
  uint64_t requested_ = 0;
  int64_t gain_ = 0;
  uint64_t debt_ = 0;
  // The part of the debt that LRU's order evicted since the last request began:
  // LRU evicts it, too, as soon as the pages come that room was made for.
  uint64_t in_turn_ = 0;
};

}  // namespace pando

#endif  // PANDO_CORE_REUSE_SHADOW_LRU_H_
