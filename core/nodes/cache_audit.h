#ifndef PANDO_CORE_NODES_CACHE_AUDIT_H_
#define PANDO_CORE_NODES_CACHE_AUDIT_H_

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/ids.h"
#include "core/nodes/node.h"
#include "core/nodes/page_pool.h"
#include "core/nodes/slab.h"
#include "core/requests/namespace.h"

namespace pando {

// A second set of counters, to compare with those that the cache keeps.
// InvariantCheck adds the nodes, locks and pages one after the other while the
// cache is in use. When an object that was added changes, the part of the cache
// that changes it reports this here. So the sums are always exact for the
// objects added so far, and complete once all are added.
//
// Owned by InvariantCheck; RadixTree, SessionTable and PagePool know it while a
// check is under way. Not thread-safe.
class CacheAudit {
 public:
  CacheAudit(uint32_t capacity_pages, uint32_t quota_classes,
             uint32_t namespaces);

  // Nodes are added in the order of their cells in the slab. Add and Remove
  // count a node in O(1). AddPages and RemovePages note its page ids; they are
  // separate calls because they are linear in its pages.
  bool HasCounted(const Node& node) const {
    return Slab<Node>::IndexOf(node) < counted_nodes_;
  }
  void set_counted_nodes(uint32_t cells) { counted_nodes_ = cells; }
  void set_seen_nodes(uint32_t cells) { seen_nodes_ = cells; }
  void Add(const Node& node) { Count(node, 1); }
  void Remove(const Node& node) { Count(node, -1); }
  void AddPages(std::span<const PageId> pages);
  void RemovePages(std::span<const PageId> pages);

  // Locks, counted by the node that they lock.
  bool HasCountedLock(uint32_t cell) const { return cell < counted_locks_; }
  void set_counted_locks(uint32_t cells) { counted_locks_ = cells; }
  void AddLock(const Node& node) { CountLock(&node, 1); }
  void RemoveLock(const Node& node) { CountLock(&node, -1); }

  // Pages.
  bool HasCounted(PageId page) const { return page.value() < counted_pages_; }
  void set_counted_pages(uint32_t pages) { counted_pages_ = pages; }
  void Add(PageState state, uint32_t quota_class) {
    Count(state, quota_class, 1);
  }
  void Remove(PageState state, uint32_t quota_class) {
    Count(state, quota_class, -1);
  }

 private:
  friend class InvariantCheck;  // which compares the sums

  // The number of a set of nodes, and the sums of their pages.
  struct Sums {
    int64_t evictable = 0;
    int64_t locked = 0;
    int64_t nodes = 0;

    void Count(const Node& node, int sign) {
      (node.is_locked() ? locked : evictable) +=
          sign * int64_t{node.page_count};
      nodes += sign;
    }
    friend bool operator==(const Sums&, const Sums&) = default;
  };
  // The locks on a node. `is_seen` says that the node was found in the tree.
  struct NodeLocks {
    int64_t count = 0;
    bool is_seen = false;
  };

  void Count(const Node& node, int sign);
  void CountLock(const Node* node, int sign);
  void Count(PageState state, uint32_t quota_class, int sign);
  // Returns the lock_count that a node should have, and marks the node as found
  // in the tree.
  int64_t ExpectedLockCount(const Node& node);

  uint32_t counted_nodes_ = 0;
  int64_t roots_ = 0;
  Sums all_;
  std::vector<Sums> by_class_;
  absl::flat_hash_map<const Namespace*, Sums> by_namespace_;
  std::vector<int64_t> unlocked_leaves_;                       // by class
  std::vector<int64_t> ended_leaves_;                          // by class
  absl::flat_hash_map<const Node*, int64_t> locked_children_;  // by parent
  std::vector<bool> in_tree_;                                  // by page
  std::vector<PageId> in_two_nodes_;  // pages that were added twice

  uint32_t counted_locks_ = 0;
  absl::flat_hash_map<const Node*, NodeLocks> locks_on_;
  // The nodes in the first `seen_nodes_` cells were found in the tree;
  // `unseen_locks_` are the locks on all other nodes.
  uint32_t seen_nodes_ = 0;
  int64_t unseen_locks_ = 0;

  uint32_t counted_pages_ = 0;
  std::array<int64_t, kPageStates> by_state_{};
  std::vector<int64_t> reserved_;  // by class
};

}  // namespace pando

#endif  // PANDO_CORE_NODES_CACHE_AUDIT_H_
