#ifndef PANDO_CORE_REUSE_REUSE_LEARNER_H_
#define PANDO_CORE_REUSE_REUSE_LEARNER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/nodes/node.h"
#include "core/nodes/slab.h"
#include "core/reuse/ghost_runs.h"
#include "core/reuse/history.h"
#include "core/reuse/node_runs.h"
#include "core/reuse/prefix_hash.h"
#include "core/reuse/request_facts.h"
#include "core/reuse/reuse_class.h"
#include "core/reuse/reuse_tables.h"
#include "core/reuse/run.h"
#include "core/reuse/shadow_lru.h"

namespace pando {

// An order of leaves that depends on what is learnt, and is told of changes.
class ReuseObserver {
 public:
  virtual ~ReuseObserver() = default;

  // Changes the bin of a listed leaf to the next one: it has aged.
  virtual void Ages(Node& leaf, Run& run, uint32_t bin) = 0;
  // An LRU cache would hold no page of this listed leaf from now on.
  virtual void LeftShadow(const Node& leaf) = 0;
  // The indexes (ReuseTables::index) of a class have changed.
  virtual void IndexChanged(uint32_t reuse_class) = 0;
};

// Learns how likely pages are to be used again, from all that is used and
// evicted (see docs/design.md). It keeps the runs, the ghosts, the history, the
// tables and the shadow LRU in step. A node that was cached before the
// learner began is unknown to it until its next use, and then counts as if
// inserted at that time.
//
// Owned by RadixTree, which tells it of every change of a node; not
// thread-safe.
class ReuseLearner {
 public:
  struct Options {
    uint32_t page_tokens;
    uint32_t capacity_pages;
    uint32_t quota_classes;
    uint32_t warmup_ticks;  // the first ticks, in which LRU chooses victims
    uint32_t first_tick;    // greater than all ticks of earlier learners
  };
  // `nodes` outlive this.
  ReuseLearner(const Options& options, const Slab<Node>* nodes);

  // Sets the observer of the leaves of a quota class; null for none.
  void SetObserver(uint32_t quota_class, ReuseObserver* observer) {
    observers_[quota_class] = observer;
  }

  // Begins a request of `prompt_tokens` tokens, of which `cached_tokens` are
  // cached. A tick passes.
  RequestFacts BeginRequest(uint32_t prompt_tokens, uint32_t cached_tokens);

  // A part of a new leaf: pages that come back from ghosts and agree in the
  // number of uses, this one included, and in the interval since the last use;
  // or pages that were not used before (uses 1, interval 0).
  struct Part {
    uint32_t pages;
    uint32_t uses;
    uint32_t interval;
  };
  // Adds a new leaf. `request` inserted it; it is null if nothing is learnt
  // from the insert. The whole leaf gets the class of its last part. Returns
  // the parts, the front one first; the tree then makes a node of each.
  const std::vector<Part>& AddLeaf(Node& leaf, RequestFacts* request);
  // Gives a node, which was made of that leaf, the class of its own part.
  void SetPart(const Node& node, const Part& part, const RequestFacts* request);
  // Whether the node was inserted or used since the learner began.
  bool Knows(const Node& node) const { return runs_.Has(node); }
  // REQUIRES: Knows(node).
  const Run& RunOf(const Node& node) const { return runs_.At(LinkOf(node)); }
  // Notes whether the node is in a bucket of the observer of its class, which
  // is told only of such nodes. REQUIRES: Knows(node).
  void SetListed(const Node& node, bool is_listed) {
    runs_.At(LinkOf(node)).is_listed = is_listed;
  }
  // Notes that `node` and its ancestors below `end` were used, by a request if
  // one is given.
  void Use(Node& node, const Node* end, const RequestFacts* request);
  // Notes that the request has now used all pages that it could.
  void NoteUsed(RequestFacts* request) const;

  // Notes that `front` was split off `back`.
  void Split(const Node& front, const Node& back);
  // Notes that `leaf` is about to lose its pages after the first `kept`. If
  // `is_evicted`, they become a ghost.
  void Trim(const Node& leaf, uint32_t kept, bool is_evicted);

  // Whether too little is known yet to choose another victim than LRU's.
  bool IsWarmingUp() const { return ticks() < options_.warmup_ticks; }
  // Whether the gain so far allows to evict leaves that LRU would keep; see
  // ShadowLru.
  bool MayOwe() const { return shadow_.MayOwe(); }
  Node* OldestUnlocked(uint32_t quota_class) {
    return history_.OldestUnlocked(quota_class);
  }
  float IndexOf(const Node& node) const {
    const Run& run = RunOf(node);
    return tables_.index(run.reuse_class, run.bin);
  }

  const History& history() const { return history_; }
  const GhostRuns& ghosts() const { return ghosts_; }
  const ReuseTables& tables() const { return tables_; }
  const ShadowLru& shadow() const { return shadow_; }
  uint64_t ghost_hits() const { return ghost_hits_; }

 private:
  // The ticks since the learner began.
  uint32_t ticks() const;
  static RunLink LinkOf(const Node& node) { return Slab<Node>::IndexOf(node); }
  static RunLink GhostLink(uint32_t slot) { return slot | kGhostBit; }
  // Makes the prints of all pages up to the end of the node, as far as they are
  // missing.
  void MakePrints(Node& node);
  void MakePrintsOf(Node& node) const;
  // Makes a node known that was cached before the learner began.
  void Meet(Node& node, const RequestFacts* request);
  // Whether a use of `node` and its ancestors below `end` would change nothing
  // in the history and the shadow: they are its newest runs, used in this tick.
  bool AreNewest(const Node& node, const Node* end) const;
  // Counts a use of a node and takes it out of the history.
  void BeginUse(Node& node, const RequestFacts* request);
  // Moves a node that the request itself used last to the class that the
  // request has by now.
  void UpdateClass(const Node& node, const RequestFacts* request);
  // Finds the ghosts that the pages of `leaf` were, fills parts_, and cuts
  // these pages off the ghosts.
  void TakeGhosts(const Node& leaf, RequestFacts* request);
  uint32_t ClassOf(const Part& part, const RequestFacts* request) const;
  // Gives a run another class, and moves its counts in the tables.
  void Reclassify(Run& run, uint32_t reuse_class);
  // Counts that the first `pages` pages of a run were used.
  void CountUse(RunLink link, uint32_t pages);
  // Adds the run as the newest.
  void Append(RunLink link);
  void AppendLeaf(const Node& leaf);
  void EnterShadow(RunLink link);
  // Adds a ghost of the pages of `leaf` after the first `kept`: they are
  // evicted.
  void AddGhost(const Node& leaf, uint32_t kept);
  // Cuts the first `pages` pages off a ghost; drops it if it has no more.
  void CutGhost(uint32_t slot, uint32_t pages);
  void DropGhost(uint32_t slot);
  // Forgets a ghost to make room for another one, or because another one begins
  // with the same print.
  void ForgetGhost(uint32_t slot);
  // Tells the observer that nothing of the run is in the shadow any more.
  void NoteLeftShadow(RunLink link);
  // The observer that lists the node of a run; null if there is none.
  ReuseObserver* ObserverOf(RunLink link) const;

  const Options options_;
  const Slab<Node>* const nodes_;
  NodeRuns runs_;
  GhostRuns ghosts_;
  History history_;
  ShadowLru shadow_;
  ReuseTables tables_;
  std::vector<ReuseObserver*> observers_;  // by quota class
  uint64_t new_pages_ = 0;
  uint64_t ghost_hits_ = 0;
  // Scratch space, so that calls need not allocate.
  std::vector<Part> parts_;
  std::vector<Node*> path_;  // the deepest node first
};

}  // namespace pando

#endif  // PANDO_CORE_REUSE_REUSE_LEARNER_H_
