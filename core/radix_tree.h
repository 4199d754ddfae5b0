#ifndef PANDO_CORE_RADIX_TREE_H_
#define PANDO_CORE_RADIX_TREE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/child_index.h"
#include "core/ids.h"
#include "core/lru_order.h"
#include "core/namespace_key.h"
#include "core/node.h"
#include "core/slab.h"

namespace pando {

// One closed world of prefixes: the node where its walks begin.
struct Namespace {
  NamespaceKey key;
  Node* root;
};

// Where a walk ended: `pages_in_node` pages into `node`.
struct TreePosition {
  Node* node;
  uint32_t pages_in_node;

  bool is_inside_node() const { return pages_in_node < node->page_count; }
  // The last node that the walk covers whole.
  Node& LastWholeNode() const {
    return is_inside_node() ? *node->parent : *node;
  }
};

// The radix tree from (namespace, token prefix) to page ids, with the locks on
// it and the order of eviction. Owned by PrefixCache; not thread-safe. It knows
// page ids, not their states.
//
// Invariants, verified by AppendViolations:
// - a node other than a root has at least one page;
// - siblings differ within their first page, and each node is found in the
//   child index by its parent and first page;
// - lock_count of a node is the locks taken on it plus those of its children;
// - evictable_pages and protected_pages are the page sums over unlocked and
//   locked nodes;
// - the eviction order holds exactly the unlocked nodes, each newer than its
//   children;
// - a namespace exists only while something is cached or locked in it.
class RadixTree {
 public:
  // `max_pages` is the most pages that the tree can ever hold.
  RadixTree(uint32_t page_tokens, uint32_t max_pages);
  ~RadixTree();

  // The root of a namespace; null when there is none.
  Node* FindRoot(const NamespaceKey& key) const;
  // The same, made when there is none. Give it back to PruneRoot if it stays
  // empty.
  Node& MakeRoot(const NamespaceKey& key);
  // Removes the namespace of `root` when nothing is cached or locked in it.
  void PruneRoot(Node& root);
  static Node& RootOf(Node& node);

  // Follows `tokens`, which come after the end of `from`, as far as they are
  // cached, for at most `max_pages` whole pages. Appends the pages found to
  // `pages`. Changes nothing.
  TreePosition Walk(Node& from, std::span<const Token> tokens,
                    uint32_t max_pages, std::vector<PageId>& pages) const;

  // The node that ends at `position`; splits a node if need be.
  Node& NodeEndingAt(TreePosition position);
  // A new leaf below `parent`, used just now, that holds all of `segment`.
  Node& AddLeaf(Node& parent, SegmentRef segment);

  // Marks `node` and its ancestors as used just now.
  void Touch(Node& node);

  // Locks `node` and its ancestors, up to `ancestor` which is left as it is
  // (null: all of them).
  void Lock(Node& node, const Node* ancestor = nullptr);
  // The reverse; what becomes unlocked counts as used just now.
  void Unlock(Node& node);

  // Pages that Lock(NodeEndingAt(position)) would protect and that are
  // evictable now.
  static uint32_t EvictablePagesUpTo(TreePosition position);

  // Takes `count` pages out of the tree, least recently used first, each leaf
  // from its tail; fewer when no more are evictable. Appends them to `evicted`.
  void Evict(uint32_t count, std::vector<PageId>& evicted);

  uint32_t evictable_pages() const { return evictable_pages_; }
  uint32_t protected_pages() const { return protected_pages_; }
  uint32_t node_count() const { return static_cast<uint32_t>(index_.size()); }
  uint32_t namespace_count() const {
    return static_cast<uint32_t>(namespaces_.size());
  }

  // Visits every node with pages.
  void ForEachNode(const std::function<void(const Node&)>& visit);

  // Adds a sentence for each invariant that does not hold; linear in the tree.
  // `locks_taken_on` counts the locks that name a node.
  void AppendViolations(
      const std::function<uint32_t(const Node&)>& locks_taken_on,
      std::vector<std::string>& violations);

 private:
  uint32_t CommonPages(const Token* a, const Token* b, uint32_t pages) const;
  Node& Split(Node& node, uint32_t pages);
  void AddChild(Node& parent, Node& node);
  void RemoveChild(Node& node);
  void TrimTail(Node& leaf, uint32_t pages, std::vector<PageId>& trimmed);
  void RemoveLeaf(Node& leaf);
  void RepackAround(Node& node);

  const uint32_t page_tokens_;
  Slab<Node> nodes_;
  ChildIndex index_;
  LruOrder order_;
  absl::flat_hash_map<NamespaceKey, std::unique_ptr<Namespace>> namespaces_;
  uint64_t now_ = 0;  // logical time: counts accesses
  uint32_t evictable_pages_ = 0;
  uint32_t protected_pages_ = 0;
};

}  // namespace pando

#endif  // PANDO_CORE_RADIX_TREE_H_
