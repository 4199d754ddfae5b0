#ifndef PANDO_CORE_REUSE_HISTORY_H_
#define PANDO_CORE_REUSE_HISTORY_H_

#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "core/nodes/node.h"
#include "core/nodes/slab.h"
#include "core/reuse/ghost_runs.h"
#include "core/reuse/node_runs.h"
#include "core/reuse/reuse_class.h"
#include "core/reuse/run.h"

namespace pando {

// All runs, cached nodes and ghosts, in a list from the least to the most
// recently used, with their ages in ticks. Each operation is O(1) for each run
// that it handles. Between two uses, a run enters each of the kAgeBins bins at
// most once. Owned by ReuseLearner; not thread-safe.
//
// Invariants:
// - a run that was used later is newer; of the nodes of one path, which are
//   used together, a parent is newer than its child;
// - the bin of a run is that of its age. So each bin is a contiguous part of
//   the list, and History knows where it begins.
class History {
 public:
  // `nodes`, `runs` and `ghosts` outlive this.
  History(const Slab<Node>* nodes, const NodeRuns* runs, GhostRuns* ghosts,
          uint32_t quota_classes, uint32_t first_tick);

  uint32_t tick() const { return tick_; }
  Run& At(RunLink link) const {
    return IsGhost(link) ? ghosts_->run(link & ~kGhostBit) : runs_->At(link);
  }

  // Adds a run as the newest one, used now.
  void Append(RunLink link);
  void Remove(RunLink link);
  // Puts `with`, whose run is a copy of that of `link`, in the place of `link`.
  void Replace(RunLink link, RunLink with);
  // Adds `link`, whose run is a copy of that of `older`, right after `older`.
  void PutAfter(RunLink link, RunLink older);
  // Adds a run, used now, right before `newer`. REQUIRES: `newer` was used now,
  // too, and OldestUnlockedFrom of the run's quota class is older.
  void PutBefore(RunLink link, RunLink newer);

  // Lets a tick pass. Calls `enter(link, run, bin)` for each run that enters a
  // bin by that. It is inline, as it is called for hundreds of runs a tick.
  template <typename F>
  void Tick(F&& enter);

  // Returns the least recently used unlocked node of a quota class, which is a
  // leaf; null if all nodes are locked.
  Node* OldestUnlocked(uint32_t quota_class);
  // Returns a run such that no unlocked node of the class is older; kNoRun if
  // all its nodes are locked.
  RunLink OldestUnlockedFrom(uint32_t quota_class) const {
    return oldest_unlocked_[quota_class];
  }

  // Adds a sentence when the node is not where it belongs in the list.
  void AppendViolations(const Node& node,
                        std::vector<std::string>& violations) const;

 private:
  static constexpr uint32_t kNever = std::numeric_limits<uint32_t>::max();

  void Link(RunLink older, RunLink newer);
  // Sets younger_ to `other` in those bins from `bin` on where it was `link`.
  void MoveBounds(uint32_t bin, RunLink link, RunLink other);
  // Sets younger_ and due_ of a bin.
  void SetYounger(uint32_t bin, RunLink link) {
    younger_[bin] = link;
    due_[bin] = link == kNoRun ? kNever : At(link).at + first_ages_[bin];
  }

  const Slab<Node>* const nodes_;
  const NodeRuns* const runs_;
  GhostRuns* const ghosts_;
  uint32_t tick_;
  RunLink oldest_ = kNoRun;
  RunLink newest_ = kNoRun;
  // For each bin: the oldest run that is too young for it, and the tick at
  // which that run enters it.
  std::array<RunLink, kAgeBins> younger_;
  std::array<uint32_t, kAgeBins> due_;
  std::array<uint32_t, kAgeBins> first_ages_;  // FirstAge of each bin
  // See OldestUnlockedFrom.
  std::vector<RunLink> oldest_unlocked_;
};

// It takes one run of each bin in turn, so that the CPU fetches the next runs
// of all bins from memory at once.
template <typename F>
void History::Tick(F&& enter) {
  ++tick_;
  uint64_t due = 0;  // a bit for each bin
  for (uint32_t b = 1; b < kAgeBins; ++b) {
    due |= uint64_t{due_[b] <= tick_} << b;
  }
  while (due != 0) {
    for (uint64_t bins = due; bins != 0; bins &= bins - 1) {
      const auto b = static_cast<uint32_t>(std::countr_zero(bins));
      const RunLink link = younger_[b];
      if (link == kNoRun || At(link).at + first_ages_[b] > tick_) {
        SetYounger(b, link);
        due &= ~(uint64_t{1} << b);
        continue;
      }
      Run& run = At(link);
      enter(link, run, b);
      younger_[b] = run.newer;
      if (run.newer != kNoRun) __builtin_prefetch(&At(run.newer));
    }
  }
}

}  // namespace pando

#endif  // PANDO_CORE_REUSE_HISTORY_H_
