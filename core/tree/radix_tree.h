#ifndef PANDO_CORE_TREE_RADIX_TREE_H_
#define PANDO_CORE_TREE_RADIX_TREE_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
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
  bool is_hit = false;  // the use is counted in hit_count
  int32_t priority = std::numeric_limits<int32_t>::min();  // at least this
  RequestFacts* request = nullptr;  // that uses it; null: none to learn from
};

// How reuse is learnt.
struct ReuseOptions {
  bool learns_always = false;  // not only while kReuse is in use
  // For how many ticks kReuse evicts as LRU does.
  uint32_t warmup_ticks = 300;
};

// The radix tree from (namespace, token prefix) to page ids, with the locks on
// it and the order of eviction. Owned by PrefixCache; not thread-safe. It knows
// page ids, not their states.
//
// Invariants, verified by InvariantCheck:
// - a node other than a root has at least one page, and begins where its parent
//   ends;
// - siblings differ within their first page, and each node is found in the
//   child index by its parent and first page;
// - lock_count of a node is the locks taken on it plus its locked children;
// - evictable_pages and protected_pages are the page sums over unlocked and
//   locked nodes, of the tree and of each namespace;
// - what each class's eviction policy can choose is its unlocked leaves;
// - the ended leaves of each class are listed;
// - a namespace exists only while something is cached or locked in it, and its
//   nodes are its own.
class RadixTree {
 public:
  // `max_pages` is the most pages that the tree can ever hold. `classes`
  // outlives the tree.
  RadixTree(uint32_t page_tokens, uint32_t max_pages, EvictionPolicyKind policy,
            const QuotaClasses* classes, const ReuseOptions& reuse = {});
  ~RadixTree();

  // Null when there is none.
  Namespace* FindNamespace(const NamespaceKey& key) const;
  Namespace* FindNamespace(NamespaceNumber number) const;
  // The namespace with the next higher number; null: there is none.
  const Namespace* NamespaceAfter(NamespaceNumber number) const;
  // Makes the namespace when there is none. The caller must give a namespace
  // that stays empty to Prune.
  Namespace& FindOrMakeNamespace(const NamespaceKey& key);
  // Removes the namespace when nothing is cached or locked in it.
  void Prune(Namespace& ns);

  // Where the prefix of `pages` pages ends that leads through `node` or ends
  // above it. None when the node is gone, or no longer reaches so far.
  std::optional<TreePosition> FindPosition(Slab<Node>::Handle node,
                                           uint32_t pages) const;

  // Follows `tokens` from `from` on, as far as they are cached and for at most
  // `max_pages` whole pages. Appends the pages found to `pages` unless it is
  // null. Changes nothing.
  TreePosition Walk(TreePosition from, std::span<const Token> tokens,
                    uint32_t max_pages, std::vector<PageId>* pages) const;

  // The node that ends at `position`. Splits a node if none ends there.
  Node& NodeEndingAt(TreePosition position);
  // A new leaf below `parent`, used just now, that holds all of `segment`. What
  // is learnt of reuse may make several nodes of it; the last one is returned.
  Node& AddLeaf(Node& parent, SegmentRef segment, const Use& use);

  // A request of `prompt_tokens` begins, of which `cached_tokens` are cached.
  RequestFacts BeginRequest(uint32_t prompt_tokens, uint32_t cached_tokens);

  // Marks `node` and its ancestors as used just now.
  void Touch(Node& node, const Use& use = {});

  // The new nodes from below `parent` to `leaf` came from a tier.
  void MarkLoaded(const Node& parent, Node& leaf);
  // How many pages of `node` and its ancestors came from a tier and are used
  // for the first time now. Costs nothing before the first load.
  uint32_t TakeLoaded(Node& node);

  // The prefix that ends with `end` is not expected to be used again. Until it
  // is, the nodes that only this prefix leads through go first of all, once
  // they are unlocked.
  void EndPrefix(Node& end);
  // Evict spares `end` for so long from now: when its turn comes, it counts as
  // used just now. Never shortens what an earlier call said; it is over once
  // the leaf has lost its end.
  void Retain(Node& end, uint16_t seconds);

  // Takes one lock on `node`, which locks its ancestors, too. It costs a step
  // for each node that was not locked yet, and one more.
  void Lock(Node& node);
  // Takes one lock off `node`. What becomes unlocked counts as used just now:
  // at most `steps` nodes, by which `steps` is reduced. If there are more, the
  // lock moves to the first of these, which is returned, for the next call;
  // null: the lock is gone.
  Node* Unlock(Node& node, uint32_t& steps);
  // Moves one lock from `ancestor` to `node`, which is below it or the same.
  void MoveLock(Node& ancestor, Node& node);

  // How many evictable pages Lock(NodeEndingAt(position)) would protect.
  static uint32_t EvictablePagesUpTo(TreePosition position);

  // Is called for each leaf that is about to lose the pages after its first
  // `kept_pages`.
  using TrimVisitor =
      absl::FunctionRef<void(const Node& leaf, uint32_t kept_pages)>;

  // Evicts `count` pages, of ended leaves and then in the order of the policy,
  // each leaf from its tail; fewer when no more are evictable. At most
  // limits[c] of them are of class c, and limits[c] is reduced by as many.
  // Appends the pages to `evicted`.
  void Evict(uint32_t count, std::span<uint32_t> limits, TrimVisitor visit,
             std::vector<PageId>& evicted);
  // Evicts at most `count` pages of the node in this cell, if it is an unlocked
  // leaf, then of its ancestors that become leaves by that. Only in namespace
  // `ns`, if one is given.
  void EvictFrom(uint32_t cell, std::optional<NamespaceNumber> ns,
                 uint32_t count, TrimVisitor visit,
                 std::vector<PageId>& evicted);

  // That victims are chosen by now.
  EvictionPolicyKind policy() const { return policy_; }
  // Null while nothing is learnt.
  const ReuseLearner* learner() const { return learner_.get(); }
  // Changes the policy in steps, between which the tree is in use: `policy` is
  // wanted from now on, and StepPolicy is to be called until it returns true.
  // Returns what was wanted before. Victims are chosen as before until a step
  // puts new orders into use, whole and for all classes. If another policy is
  // wanted meanwhile, the change goes on to that one instead.
  //
  // A step costs as much as `nodes` nodes.
  EvictionPolicyKind BeginPolicy(EvictionPolicyKind policy);
  bool StepPolicy(uint32_t nodes);
  // Takes all steps.
  void SetPolicy(EvictionPolicyKind policy);

  uint32_t page_tokens() const { return page_tokens_; }
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
  // Nodes by the cell that they are in, roots too; null when it is empty.
  const Node* NodeAt(uint32_t cell) const { return nodes_.FindAt(cell); }
  uint32_t node_cells() const { return nodes_.cells(); }
  static constexpr uint32_t kBlockNodes = Slab<Node>::kBlockCells;
  // Null when the node is gone.
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
  // Reports changes of counted nodes to `audit` from now on; null ends that.
  // Damage is no such change, so the audit finds it.
  void set_audit(CacheAudit* audit) { audit_ = audit; }

 private:
  friend class DamagedCache;  // tests break what AppendViolations finds

  // The orders that are filled: of `policy`, on the way to the one that was
  // wanted.
  struct Filling {
    EvictionPolicyKind wanted;
    EvictionPolicyKind policy;
    bool is_linked;
    uint32_t next_cell = 0;  // whose node they do not have yet
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
  Node& NewNode(Namespace& ns);
  Node& Split(Node& node, uint32_t pages);
  void AddChild(Node& parent, Node& node);
  void RemoveChild(Node& node);
  Node* NextVictim(std::span<const uint32_t> limits) const;
  Node& SpareRetained(Node& first, uint32_t& spared_by_call);
  void PrefetchAfter(const Node& victim) const;
  // A node that had ended is used, or gets a child.
  void ForgetEnd(Node& node);
  void CountPages(Namespace& ns, int64_t evictable, int64_t locked);
  void TrimTail(Node& leaf, uint32_t pages, bool is_evicted, TrimVisitor visit,
                std::vector<PageId>& trimmed);
  void TouchPath(Node& node, const Use& use);
  void SplitIntoParts(Node& leaf, RequestFacts* request);
  void MakeLearner();
  void BeginFilling();
  void FillOrders(uint32_t nodes);
  void TakeDown(std::unique_ptr<EvictionPolicy> (ChangingOrder::*take)(),
                bool is_linked);
  void Unlink(uint32_t nodes);
  void DropUnusedLearner();
  void RemoveLeaf(Node& leaf, bool is_evicted);
  void RepackAround(Node& node);

  void AppendLinkViolations(const Node& node,
                            std::vector<std::string>& violations) const;
  // How many pages of its segment `node` and its descendants use.
  uint32_t PagesOfSegment(const Node& node) const;
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
  EvictionPolicyKind policy_ = EvictionPolicyKind::kLru;
  EvictionPolicyKind wanted_ = EvictionPolicyKind::kLru;
  bool is_linked_ = false;  // whether policy_ is in Node::older and newer
  std::optional<Filling> filling_;
  // Not in use any more.
  std::vector<std::unique_ptr<EvictionPolicy>> retired_;
  // The next cell whose node has links of an order, and perhaps the run of a
  // learner, that is gone.
  std::optional<uint32_t> unlinking_;
  Slab<Node> nodes_;
  std::unique_ptr<ReuseLearner> learner_;
  uint32_t next_tick_ = 0;  // of the next learner
  ChildIndex index_;
  std::vector<ClassState> classes_;
  Slab<Namespace> namespaces_;
  SteadyIndex namespaces_by_key_;  // cells of namespaces
  absl::btree_map<NamespaceNumber, Namespace*> namespaces_by_number_;
  uint64_t namespaces_created_ = 0;
  uint64_t nodes_created_ = 0;
  uint64_t now_ = 0;  // counts accesses
  bool has_loaded_ = false;
  uint32_t time_ = 0;
  uint32_t evictable_pages_ = 0;
  uint32_t protected_pages_ = 0;
  CacheAudit* audit_ = nullptr;
};

}  // namespace pando

#endif  // PANDO_CORE_TREE_RADIX_TREE_H_
