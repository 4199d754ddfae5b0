#ifndef PANDO_CORE_TREE_RADIX_TREE_H_
#define PANDO_CORE_TREE_RADIX_TREE_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/functional/function_ref.h"
#include "base/ids.h"
#include "core/eviction/changing_order.h"
#include "core/eviction/ended_leaves.h"
#include "core/eviction/eviction_policy.h"
#include "core/eviction/quota_classes.h"
#include "core/nodes/cache_audit.h"
#include "core/nodes/child_index.h"
#include "core/nodes/node.h"
#include "core/nodes/page_ledger.h"
#include "core/nodes/slab.h"
#include "core/nodes/steady_index.h"
#include "core/requests/namespace.h"
#include "core/reuse/reuse_learner.h"

namespace pando {

// A place in the tree, where a walk ended: `pages_in_node` pages into `node`.
struct TreePosition {
  Node* node;
  uint32_t pages_in_node;

  bool is_inside_node() const { return pages_in_node < node->page_count; }
  // The last node that the walk covers whole.
  Node& LastWholeNode() const {
    return is_inside_node() ? *node->parent : *node;
  }
  uint32_t pages() const { return node->depth_pages + pages_in_node; }
};

inline TreePosition EndOf(Node& node) { return {&node, node.page_count}; }

// How a prefix was used.
struct Use {
  bool is_hit = false;  // whether Node::hit_count counts the use
  // The nodes' priority becomes at least this.
  int32_t priority = std::numeric_limits<int32_t>::min();
  // The request that uses it; null: nothing to learn from.
  RequestFacts* request = nullptr;
};

// How the tree learns about reuse; see ReuseLearner.
struct ReuseOptions {
  // Also while another policy than kReuse is in use.
  bool learns_always = false;
  // For how many ticks after the learner's start kReuse evicts as LRU does.
  uint32_t warmup_ticks = 300;
};

// The radix tree from (namespace, token prefix) to page ids, with the locks on
// it and the order of eviction. Owned by CacheParts; not thread-safe. It knows
// page ids, but not the states of pages.
//
// Invariants, verified by InvariantCheck:
// - a node other than a root has at least one page, and begins where its parent
//   ends;
// - siblings differ within their first page, and each node is found in the
//   child index by its parent and first page;
// - lock_count of a node is the locks taken on it plus its locked children;
// - evictable_pages and protected_pages are the page sums over unlocked and
//   locked nodes, of the tree and of each namespace;
// - the eviction policy of each class can choose exactly the unlocked leaves of
//   that class;
// - the ended leaves of each class are listed;
// - a namespace exists only while something is cached or locked in it, and its
//   nodes are its own.
class RadixTree {
 public:
  // `page_tokens` is the number of units in a page, `max_pages` the most pages
  // that the tree can ever hold. `classes` and `ledger` outlive the tree. If
  // `ledger` is not null, the tree keeps its segments and namespaces there.
  RadixTree(uint32_t page_tokens, uint32_t max_pages, EvictionPolicyKind policy,
            const QuotaClasses* classes, const ReuseOptions& reuse = {},
            PageLedger* ledger = nullptr);
  ~RadixTree();

  // Adds what an earlier process has left in the ledger, roughly in its order
  // of eviction (all of a segment is as young as its end), but without locks,
  // hints and what was learnt. Segments whose facts cannot be true are dropped.
  // It keeps empty namespaces until PruneRecovered.
  // Returns for each page whether it is cached. REQUIRES: the tree is new, and
  // the ledger is of before.
  std::vector<bool> Recover();
  // A node that the earlier process had locked, with all nodes before it: the
  // last such node of its segment. SegmentFacts::locked_pages counts `pages` of
  // the segment for these locks; once the node is locked anew, its owner
  // subtracts them (Segment::NoteUnlocked).
  struct EarlierLocked {
    Node* node;
    uint32_t pages;
  };
  // Returns these nodes, once; nothing may change between Recover and this
  // call.
  std::vector<EarlierLocked> TakeEarlierLocked() {
    return std::exchange(earlier_locked_, {});
  }
  // Returns the prompts of the ledger, by Segment::ledger_place; once.
  using Prompts = absl::flat_hash_map<uint64_t, SegmentRef>;
  Prompts TakeEarlierPrompts() { return std::exchange(earlier_prompts_, {}); }
  // Returns for each of these pages the node that ends with it, and splits
  // nodes as needed; null if the page is not cached.
  std::vector<Node*> NodesEndingWith(std::span<const PageId> pages);
  // Removes the namespaces in which nothing was cached or locked anew.
  void PruneRecovered();

  // Returns a namespace, or null if it does not exist.
  Namespace* FindNamespace(const NamespaceKey& key) const;
  Namespace* FindNamespace(NamespaceNumber number) const;
  // The namespace with the next higher number; null if there is none.
  const Namespace* NamespaceAfter(NamespaceNumber number) const;
  // Returns the namespace, and makes it if it does not exist. If nothing is
  // then cached or locked in it, the caller must call Prune.
  Namespace& FindOrMakeNamespace(const NamespaceKey& key);
  // Removes the namespace if nothing is cached or locked in it.
  void Prune(Namespace& ns);

  // Returns where a prefix of `pages` pages ends that lies on the path to
  // `node`: in `node` or in a node above it. None if the node is gone or no
  // longer reaches that far.
  std::optional<TreePosition> FindPosition(Slab<Node>::Handle node,
                                           uint32_t pages) const;

  // Follows `tokens` from `from` on, as far as they are cached and for at most
  // `max_pages` whole pages. Appends the pages found to `pages` unless it is
  // null. Changes nothing.
  TreePosition Walk(TreePosition from, std::span<const Token> tokens,
                    uint32_t max_pages, std::vector<PageId>* pages) const;

  // Returns the node that ends at `position`. If none ends there, it splits
  // one.
  Node& NodeEndingAt(TreePosition position);
  // Adds a new leaf below `parent` with all of `segment`, used just now. The
  // learner of reuse may cut it into several nodes; the last one is returned.
  Node& AddLeaf(Node& parent, SegmentRef segment, const Use& use);

  // Tells the learner that a request of `prompt_tokens` tokens begins, of which
  // `cached_tokens` are cached. Returns what later calls of the request pass on
  // in Use::request.
  RequestFacts BeginRequest(uint32_t prompt_tokens, uint32_t cached_tokens);

  // Marks `node` and its ancestors as used just now.
  void Touch(Node& node, const Use& use = {});

  // Marks the new nodes from below `parent` down to `leaf` as loaded from a
  // tier.
  void MarkLoaded(const Node& parent, Node& leaf);
  // Returns how many pages of `node` and its ancestors came from a tier and are
  // used for the first time now, and takes their marks off. It costs nothing
  // before the first load.
  uint32_t TakeLoaded(Node& node);

  // Notes that the prefix which ends with `end` is not expected to be used
  // again. Once they are unlocked, the nodes that only this prefix leads
  // through are evicted before all others. A later use of a node ends that.
  void EndPrefix(Node& end);
  // Retains `end` for `seconds` from now: when its turn to be evicted comes,
  // Evict treats it as used just now instead, within bounds. A call never
  // shortens the time of an earlier one. The retention ends early once the
  // leaf's tail is trimmed.
  void Retain(Node& end, uint16_t seconds);

  // Takes one lock on `node`, which locks its ancestors, too. It costs one step
  // for each node that was not locked yet, plus one.
  void Lock(Node& node);
  // Releases one lock on `node`. Nodes that become unlocked count as used just
  // now. Unlocks at most `steps` nodes, and reduces `steps` by their number. If
  // there are more, the lock moves to the first of the rest, which is returned;
  // call Unlock again with that node. Returns null when the lock is gone.
  Node* Unlock(Node& node, uint32_t& steps);
  // Moves one lock from `ancestor` to `node`, which is the same node or one
  // below it.
  void MoveLock(Node& ancestor, Node& node);

  // How many evictable pages Lock(NodeEndingAt(position)) would protect.
  static uint32_t EvictablePagesUpTo(TreePosition position);

  // The tree calls this for each leaf that is about to lose the pages after its
  // first `kept_pages`.
  using TrimVisitor =
      absl::FunctionRef<void(const Node& leaf, uint32_t kept_pages)>;

  // Evicts `count` pages, or fewer if no more are evictable: first from ended
  // leaves, then in the order of the policy, each leaf from its tail. Evicts at
  // most limits[c] pages of class c, and reduces limits[c] by their number.
  // Appends the pages to `evicted`.
  void Evict(uint32_t count, std::span<uint32_t> limits, TrimVisitor visit,
             std::vector<PageId>& evicted);
  // Evicts at most `count` pages: of the node in this cell, if it is an
  // unlocked leaf, and then of those of its ancestors that become leaves. Does
  // nothing if `ns` is given and the node is in another namespace. Returns the
  // cell to go on from if only `count` has ended it.
  std::optional<uint32_t> EvictFrom(uint32_t cell,
                                    std::optional<NamespaceNumber> ns,
                                    uint32_t count, TrimVisitor visit,
                                    std::vector<PageId>& evicted);

  // The policy that chooses victims now.
  EvictionPolicyKind policy() const { return policy_; }
  // The learner of reuse; null while nothing is learnt.
  const ReuseLearner* learner() const { return learner_.get(); }
  // Change the policy in steps; the tree may be in use between them.
  // BeginPolicy sets the wanted policy and returns the one wanted before; the
  // caller then calls StepPolicy until it returns true. The old policy chooses
  // victims until one step puts complete new orders into use, for all classes
  // at once. If BeginPolicy is called again meanwhile, the steps lead to the
  // new policy instead.
  //
  // A step handles about `nodes` nodes.
  EvictionPolicyKind BeginPolicy(EvictionPolicyKind policy);
  bool StepPolicy(uint32_t nodes);
  // Changes the policy and takes all steps.
  void SetPolicy(EvictionPolicyKind policy);

  uint32_t page_tokens() const { return page_tokens_; }
  // Where new segments should be; null: on the heap.
  SegmentArena* arena() const {
    return ledger_ == nullptr ? nullptr : &ledger_->arena();
  }
  uint32_t evictable_pages() const { return evictable_pages_; }
  uint32_t protected_pages() const { return protected_pages_; }
  // Evictable and protected pages of a class.
  uint32_t cached_pages(uint32_t quota_class) const {
    return classes_[quota_class].cached_pages;
  }
  uint32_t evictable_pages(uint32_t quota_class) const {
    return classes_[quota_class].evictable_pages;
  }
  // How often a retained leaf of a class was spared.
  uint64_t spared_leaves(uint32_t quota_class) const {
    return classes_[quota_class].spared_leaves;
  }
  uint32_t node_count() const { return static_cast<uint32_t>(index_.size()); }
  uint32_t namespace_count() const { return namespaces_.size(); }
  // The logical clock that last_access is read from: it counts accesses.
  uint64_t now() const { return now_; }
  // The time that nodes remember, in tenths of a second.
  uint32_t time() const { return time_; }
  void set_time(uint32_t time) { time_ = time; }

  // Visits every node with pages; linear in the tree.
  void ForEachNode(absl::FunctionRef<void(const Node&)> visit) const;
  // Visits the nodes of one block of the slab, roots too. A node never leaves
  // its block, and the number of blocks never shrinks.
  void ForEachNodeOfBlock(uint32_t block,
                          absl::FunctionRef<void(const Node&)> visit) const;
  uint32_t node_blocks() const { return nodes_.blocks(); }
  // The node in a cell of the slab, roots included; null if the cell is empty.
  const Node* NodeAt(uint32_t cell) const { return nodes_.FindAt(cell); }
  uint32_t node_cells() const { return nodes_.cells(); }
  static constexpr uint32_t kBlockNodes = Slab<Node>::kBlockCells;
  // Returns a node, or null if it is gone.
  const Node* FindNode(Slab<Node>::Handle handle) const {
    return nodes_.Find(handle);
  }
  void ForEachNamespace(absl::FunctionRef<void(Namespace&)> visit) const;

  // Adds a sentence for each invariant that does not hold at `node`, which
  // should have this lock_count.
  void AppendViolations(const Node& node, int64_t lock_count,
                        std::vector<std::string>& violations) const;
  size_t ended_leaves(uint32_t quota_class) const {
    return classes_[quota_class].ended.size();
  }
  // The order of eviction of a class.
  const EvictionPolicy& order(uint32_t quota_class) const {
    return classes_[quota_class].order.now();
  }
  // From now on reports to `audit` the changes of nodes that it has counted;
  // null ends that. Damage to a node is not reported, so the audit's sums show
  // it.
  void set_audit(CacheAudit* audit) { audit_ = audit; }

 private:
  friend class DamagedCache;  // tests break what AppendViolations finds

  // A change of policy under way: the orders of `policy` are being filled. That
  // may be an intermediate policy on the way to `wanted`.
  struct Filling {
    EvictionPolicyKind wanted;
    EvictionPolicyKind policy;
    bool is_linked;
    uint32_t next_cell = 0;  // the first cell whose node they lack
  };

  struct ClassState {
    ChangingOrder order;
    EndedLeaves ended;
    uint32_t cached_pages = 0;
    uint32_t evictable_pages = 0;
    uint64_t spared_leaves = 0;
  };

  ChangingOrder& OrderOf(const Node& node) {
    return classes_[node.ns->quota_class].order;
  }
  EndedLeaves& EndedOf(const Node& node) {
    return classes_[node.ns->quota_class].ended;
  }
  uint32_t CommonPages(const Node& node, uint32_t first_page,
                       const Token* tokens, uint32_t pages,
                       uint32_t known) const;
  Namespace& MakeNamespace(const NamespaceKey& key, uint32_t ledger_cell);
  Node& NewNode(Namespace& ns);
  // Adds a new leaf, as AddLeaf does, without using it.
  Node& Attach(Node& parent, SegmentRef segment, const Use& use);
  // Tells the ledger where the segment of `node` is. REQUIRES: the node has its
  // first pages.
  void PublishSegment(Node& node) const;
  // Tells the ledger how `node`, which is no root, was used last.
  void NoteUseInLedger(Node& node) const;
  // Gives the nodes their last uses. `leaves` are the last nodes of all
  // segments; a segment comes after those that it continues.
  void RecoverUses(std::span<Node* const> leaves);
  // The namespaces of the ledger, by cell; null where there is none.
  std::vector<Namespace*> RecoverNamespaces();
  // Whether a process can have left the segment like this.
  bool IsPlausible(const Segment& segment,
                   const std::vector<Namespace*>& namespaces) const;
  std::vector<SegmentRef> RecoverSegments(
      const std::vector<Namespace*>& namespaces);
  // Where a segment of the ledger begins, if that is in the tree by now.
  // `leaves` has the last node of each segment so far, and `segment_of` says
  // which of them contains a page.
  std::optional<TreePosition> FindPlace(
      const Segment& segment, const Namespace& ns,
      std::span<Node* const> leaves,
      std::span<const uint32_t> segment_of) const;
  // Splits a node: makes a new parent for it, with its first `pages` pages, and
  // returns that parent.
  Node& Split(Node& node, uint32_t pages);
  void AddChild(Node& parent, Node& node);
  void RemoveChild(Node& node);
  // The leaf to evict next, of the classes with limits[c] > 0; null if there is
  // none.
  Node* NextVictim(std::span<const uint32_t> limits) const;
  Node& SpareRetained(Node& first, uint32_t& spared_by_call);
  void PrefetchAfter(const Node& victim) const;
  // Takes the mark of EndPrefix off a node that is used or gets a child.
  void ForgetEnd(Node& node);
  // Adds to the page counts of the namespace, of its class and of the tree.
  void CountPages(Namespace& ns, int64_t evictable, int64_t locked);
  void TrimTail(Node& leaf, uint32_t pages, bool is_evicted, TrimVisitor visit,
                std::vector<PageId>& trimmed);
  void TouchPath(Node& node, const Use& use);
  // Tells the learner of a new leaf, and splits the leaf into the parts that
  // the learner returns.
  void SplitIntoParts(Node& leaf, RequestFacts* request);
  void MakeLearner();
  void BeginFilling();
  void FillOrders(uint32_t nodes);
  void TakeDown(std::unique_ptr<EvictionPolicy> (ChangingOrder::*take)(),
                bool is_linked);
  void Unlink(uint32_t nodes);
  void DropUnusedLearner();
  // Deletes a leaf; also its namespace if that is then unused.
  void RemoveLeaf(Node& leaf, bool is_evicted);
  // If at most half of the node's segment is still used, gives each node that
  // shares it a segment of its own, so that evicted tokens do not stay in
  // memory.
  void RepackAround(Node& node);

  void AppendLinkViolations(const Node& node,
                            std::vector<std::string>& violations) const;
  // How many pages of the segment of `node` that node and its descendants use.
  // The second number is how many of these pages are in locked nodes.
  std::pair<uint32_t, uint32_t> PagesOfSegment(const Node& node) const;
  bool IsAudited(const Node& node) const {
    return audit_ != nullptr && audit_->HasCounted(node);
  }

  // Reports the change of a node to the audit: construct it before the change,
  // destroy it after.
  class AuditedChange {
   public:
    AuditedChange(const RadixTree& tree, const Node& node)
        : audit_(tree.IsAudited(node) ? tree.audit_ : nullptr), node_(node) {
      if (audit_ != nullptr) audit_->Remove(node_);
    }
    ~AuditedChange() {
      if (audit_ != nullptr) audit_->Add(node_);
    }
    AuditedChange(const AuditedChange&) = delete;
    AuditedChange& operator=(const AuditedChange&) = delete;

   private:
    CacheAudit* const audit_;
    const Node& node_;
  };

  const uint32_t page_tokens_;
  const uint32_t max_pages_;
  const QuotaClasses* const quota_classes_;
  const ReuseOptions reuse_;
  PageLedger* const ledger_;
  EvictionPolicyKind policy_ = EvictionPolicyKind::kLru;
  EvictionPolicyKind wanted_ = EvictionPolicyKind::kLru;
  // Whether the order of policy_ uses Node::older and newer.
  bool is_linked_ = false;
  std::optional<Filling> filling_;
  // Orders that are not used any more and are being taken down in steps.
  std::vector<std::unique_ptr<EvictionPolicy>> retired_;
  // The next cell to clean: its node may still have links of an order, or
  // prints for a learner, that no longer exist.
  std::optional<uint32_t> unlinking_;
  Slab<Node> nodes_;
  std::unique_ptr<ReuseLearner> learner_;
  uint32_t next_tick_ = 0;  // the first tick of the next learner
  ChildIndex index_;
  std::vector<ClassState> classes_;
  Slab<Namespace> namespaces_;
  SteadyIndex namespaces_by_key_;  // cells of namespaces
  absl::btree_map<NamespaceNumber, Namespace*> namespaces_by_number_;
  uint64_t namespaces_created_ = 0;
  uint64_t nodes_created_ = 0;
  uint64_t now_ = 0;  // counts accesses
  bool has_loaded_ = false;
  std::vector<EarlierLocked> earlier_locked_;
  Prompts earlier_prompts_;
  uint32_t time_ = 0;
  uint32_t evictable_pages_ = 0;
  uint32_t protected_pages_ = 0;
  CacheAudit* audit_ = nullptr;
};

}  // namespace pando

#endif  // PANDO_CORE_TREE_RADIX_TREE_H_
