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

// All runs, cached and ghosts, in a list from the least to the most recently
// used, and their ages. Time is counted in ticks. Each step is O(1) a run; a
// run enters at most kAgeBins bins in its life. Owned by ReuseLearner; not
// thread-safe.
//
// Invariants:
// - what is used later is newer; of one path, used at once, the parent is;
// - the bin of a run is that of its age, so that bins are stretches of the
//   list, of which History knows where each begins.
class History {
 public:
  // Both outlive this.
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

  // As the newest, used now.
  void Append(RunLink link);
  void Remove(RunLink link);
  // `with`, a copy of `link`, takes its place.
  void Replace(RunLink link, RunLink with);
  // `link`, a copy of `older`, comes next after it.
  void PutAfter(RunLink link, RunLink older);

  // A tick passes. Is called for each run that enters a bin.
  void Tick(absl::FunctionRef<void(RunLink, uint32_t bin)> enter);

  // The unlocked node of a quota class that was used least recently, which is a
  // leaf; null when all are locked.
  Node* OldestUnlocked(uint32_t quota_class);

  // Adds a sentence when the node is not where it belongs in the list.
  void AppendViolations(const Node& node,
                        std::vector<std::string>& violations) const;

 private:
  static constexpr uint32_t kNever = std::numeric_limits<uint32_t>::max();

  void Link(RunLink older, RunLink newer);
  // Bins from `bin` on whose oldest younger run was `link` have `other`.
  void MoveBounds(uint32_t bin, RunLink link, RunLink other);
  void SetYounger(uint32_t bin, RunLink link);

  const Slab<Node>* const nodes_;
  GhostRuns* const ghosts_;
  uint32_t tick_;
  RunLink oldest_ = kNoRun;
  RunLink newest_ = kNoRun;
  // By bin: the oldest run that is not as old yet, and the tick when it is.
  std::array<RunLink, kAgeBins> younger_;
  std::array<uint32_t, kAgeBins> due_;
  // By quota class: no unlocked node of it is older than this run.
  std::vector<RunLink> oldest_unlocked_;
};

}  // namespace pando

#endif  // PANDO_CORE_REUSE_HISTORY_H_
