#ifndef PANDO_CORE_EVICTION_FILLING_LRU_H_
#define PANDO_CORE_EVICTION_FILLING_LRU_H_

#include <cstdint>

#include "absl/container/btree_set.h"
#include "core/eviction/lru_policy.h"
#include "core/nodes/slab.h"

namespace pando {

// An LruPolicy that is filled in steps. A node that is used or unlocked
// meanwhile is the newest, and is listed at once. Nodes that were there before
// are first sorted by their last use, and then appended from the newest to the
// oldest at the old end of the ring, unless they were listed or removed since.
// Once Fill has returned true, this is an LruPolicy like any other.
class FillingLru : public LruPolicy {
 public:
  // `nodes` outlives this. REQUIRES: Node::older and newer of all nodes are
  // null.
  explicit FillingLru(const Slab<Node>* nodes) : nodes_(nodes) {}

  void AddFront(Node& front, Node& back) override;
  void AddEarlier(Node& node) override;
  bool Fill(uint32_t nodes) override;
  // Forgets the nodes that wait for Fill.
  bool Shrink(uint32_t nodes) override;

 private:
  // Sorts nodes by their last use. Of the nodes of one path, which were used
  // together, the deepest is the oldest. Splits do not change end_pages.
  struct Place {
    uint64_t last_access;
    uint32_t end_pages;
    Slab<Node>::Handle node;

    friend bool operator<(const Place& a, const Place& b) {
      if (a.last_access != b.last_access) return a.last_access < b.last_access;
      if (a.end_pages != b.end_pages) return a.end_pages > b.end_pages;
      return a.node < b.node;
    }
  };

  const Slab<Node>* const nodes_;
  absl::btree_set<Place> waiting_;
};

}  // namespace pando

#endif  // PANDO_CORE_EVICTION_FILLING_LRU_H_
