#ifndef PANDO_CORE_REUSE_REUSE_LEARNER_H_
#define PANDO_CORE_REUSE_REUSE_LEARNER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/nodes/node.h"
#include "core/nodes/run.h"
#include "core/nodes/slab.h"
#include "core/reuse/ghost_runs.h"
#include "core/reuse/history.h"
#include "core/reuse/prefix_hash.h"
#include "core/reuse/request_facts.h"
#include "core/reuse/reuse_class.h"
#include "core/reuse/reuse_tables.h"
#include "core/reuse/shadow_lru.h"

namespace pando {

// An order of leaves that looks at what is learnt.
class ReuseObserver {
 public:
  virtual ~ReuseObserver() = default;

  // The bin of an unlocked leaf is about to change, and has changed.
  virtual void BeforeAgeing(Node& leaf) = 0;
  virtual void AfterAgeing(Node& leaf) = 0;
  // LRU would hold nothing of an unlocked leaf from now on.
  virtual void LeftShadow(const Node& leaf) = 0;
  // ReuseTables::index of the class changed.
  virtual void IndexChanged(uint32_t reuse_class) = 0;
};

// Learns how likely pages are to be used again, from all that is used and
// evicted: see docs/design.md. It keeps Node::run, the ghosts, the history, the
// tables and the shadow LRU in step. A node that was there before it is known
// from its next use on, as if it had been inserted then.
//
// Owned by RadixTree, which tells it of every change of a node; not
// thread-safe.
class ReuseLearner {
 public:
  struct Options {
    uint32_t page_tokens;
    uint32_t capacity_pages;
    uint32_t quota_classes;
    uint32_t warmup_ticks;  // in which LRU is followed
    uint32_t first_tick;    // after all ticks of learners before
  };
  // `nodes` outlive this.
  ReuseLearner(const Options& options, const Slab<Node>* nodes);

  // Null: none. Those of a quota class are its leaves.
  void SetObserver(uint32_t quota_class, ReuseObserver* observer) {
    observers_[quota_class] = observer;
  }

  // A request of `prompt_tokens` begins, of which `cached_tokens` are cached. A
  // tick passes.
  RequestFacts BeginRequest(uint32_t prompt_tokens, uint32_t cached_tokens);

  // A part of a new leaf that was used alike before, or not at all.
  struct Part {
    uint32_t pages;
    uint32_t uses;
    uint32_t interval;
  };
  // `leaf` is new; a request inserted it, or nobody that is learnt from. It
  // counts as of the class of its last part. Returns the parts, front first,
  // which the tree makes nodes of.
  const std::vector<Part>& AddLeaf(Node& leaf, RequestFacts* request);
  // `node`, which is of the same leaf, is this part.
  void SetPart(Node& node, const Part& part, const RequestFacts* request);
  // Whether the node was inserted or used since the learner began. REQUIRES: no
  // earlier learner has left anything in it.
  static bool Knows(const Node& node) { return node.run.uses > 0; }
  // `node` is used; by a request, if one is given. Between the two calls it is
  // in no history. The nodes of a path begin together, so that LRU would find
  // them all, and end one after the other, the deepest first.
  void BeginUse(Node& node, const RequestFacts* request);
  void EndUse(Node& node);
  // The request has used what it could.
  void NoteUsed(RequestFacts* request) const;

  // `front` was split off `back`.
  void Split(Node& front, Node& back);
  // `leaf` is about to lose its pages after the first `kept`: a ghost of them
  // stays if it `is_evicted`.
  void Trim(Node& leaf, uint32_t kept, bool is_evicted);

  // Whether too little was seen yet to choose any victim but LRU's.
  bool IsWarmingUp() const { return ticks() < options_.warmup_ticks; }
  // Whether what was gained pays for victims that LRU would keep.
  bool MayOwe() const { return shadow_.MayOwe(); }
  Node* OldestUnlocked(uint32_t quota_class) {
    return history_.OldestUnlocked(quota_class);
  }
  float IndexOf(const Node& node) const {
    return tables_.index(node.run.reuse_class, node.run.bin);
  }

  const History& history() const { return history_; }
  const GhostRuns& ghosts() const { return ghosts_; }
  const ReuseTables& tables() const { return tables_; }
  const ShadowLru& shadow() const { return shadow_; }
  uint64_t ghost_hits() const { return ghost_hits_; }

 private:
  // That passed since the learner began.
  uint32_t ticks() const;
  static RunLink LinkOf(const Node& node) { return Slab<Node>::IndexOf(node); }
  static RunLink GhostLink(uint32_t slot) { return slot | kGhostBit; }
  // Makes the prints of all pages up to the end of the node, unless that was
  // done.
  void MakePrints(Node& node);
  void MakePrintsOf(Node& node) const;
  void Meet(Node& node, const RequestFacts* request);
  // Finds the ghosts of `leaf`, whose pages they become.
  void TakeGhosts(const Node& leaf, RequestFacts* request);
  uint32_t ClassOf(const Part& part, const RequestFacts* request) const;
  void Reclassify(Node& node, uint32_t reuse_class);
  void CountUse(RunLink link, uint32_t pages);
  // Adds the run as the newest.
  void Append(RunLink link);
  // Adds a ghost of the pages of `leaf` after the first `kept`: they are
  // evicted.
  void AddGhost(const Node& leaf, uint32_t kept);
  void CutGhost(uint32_t slot, uint32_t pages);
  void DropGhost(uint32_t slot);
  // Makes room, or a name, for another.
  void ForgetGhost(uint32_t slot);
  void Enter(RunLink link, uint32_t bin);
  void NoteLeftShadow(RunLink link);
  // The observer of the node's quota class; null unless the node is an unlocked
  // leaf.
  ReuseObserver* ObserverOf(const Node& node) const;

  const Options options_;
  const Slab<Node>* const nodes_;
  GhostRuns ghosts_;
  History history_;
  ShadowLru shadow_;
  ReuseTables tables_;
  std::vector<ReuseObserver*> observers_;  // by quota class
  uint64_t new_pages_ = 0;
  uint64_t ghost_hits_ = 0;
  // Scratch, so that nothing is allocated.
  std::vector<Part> parts_;
  std::vector<Node*> path_;  // the deepest node first
};

}  // namespace pando

#endif  // PANDO_CORE_REUSE_REUSE_LEARNER_H_
