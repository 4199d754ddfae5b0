#ifndef PANDO_CORE_REUSE_HISTORY_H_
#define PANDO_CORE_REUSE_HISTORY_H_

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/nodes/node.h"
#include "core/nodes/run.h"
#include "core/nodes/slab.h"
#include "core/reuse/ghost_runs.h"
#include "core/reuse/reuse_class.h"

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
  // `nodes` and `ghosts` outlive this.
  History(const Slab<Node>* nodes, GhostRuns* ghosts, uint32_t quota_classes,
          uint32_t first_tick);

  uint32_t tick() const { return tick_; }
  Run& At(RunLink link) const {
    return IsGhost(link) ? ghosts_->run(link & ~kGhostBit)
                         : nodes_->FindAt(link)->run;
  }
  uint32_t PagesOf(RunLink link) const {
    return IsGhost(link) ? ghosts_->pages(link & ~kGhostBit)
                         : nodes_->FindAt(link)->page_count;
  }

  // Adds a run as the newest one, used now.
  void Append(RunLink link);
  void Remove(RunLink link);
  // Puts `with`, whose run is a copy of that of `link`, in the place of `link`.
  void Replace(RunLink link, RunLink with);
  // Adds `link`, whose run is a copy of that of `older`, right after `older`.
  void PutAfter(RunLink link, RunLink older);

  // Lets a tick pass. Calls `enter` for each run that enters a bin by that.
  void Tick(absl::FunctionRef<void(RunLink, uint32_t bin)> enter);

  // Returns the least recently used unlocked node of a quota class, which is a
  // leaf; null if all nodes are locked.
  Node* OldestUnlocked(uint32_t quota_class);

  // Adds a sentence when the node is not where it belongs in the list.
  void AppendViolations(const Node& node,
                        std::vector<std::string>& violations) const;

 private:
  static constexpr uint32_t kNever = std::numeric_limits<uint32_t>::max();

  void Link(RunLink older, RunLink newer);
  // Sets younger_ to `other` in those bins from `bin` on where it was `link`.
  void MoveBounds(uint32_t bin, RunLink link, RunLink other);
  // Sets younger_ and due_ of a bin.
  void SetYounger(uint32_t bin, RunLink link);

  const Slab<Node>* const nodes_;
  GhostRuns* const ghosts_;
  uint32_t tick_;
  RunLink oldest_ = kNoRun;
  RunLink newest_ = kNoRun;
  // For each bin: the oldest run that is too young for it, and the tick at
  // which that run enters it.
  std::array<RunLink, kAgeBins> younger_;
  std::array<uint32_t, kAgeBins> due_;
  // For each quota class, a run such that no unlocked node of the class is
  // older.
  std::vector<RunLink> oldest_unlocked_;
};

}  // namespace pando

#endif  // PANDO_CORE_REUSE_HISTORY_H_
