#ifndef PANDO_CORE_EVICTION_FILLING_LRU_H_
#define PANDO_CORE_EVICTION_FILLING_LRU_H_

#include <cstdint>

#include "absl/container/btree_set.h"
#include "core/eviction/lru_policy.h"
#include "core/nodes/slab.h"

namespace pando {

// An LruPolicy that is filled in steps. What is used or unlocked meanwhile is
// the newest, and is listed at once. What was there before is sorted first, and
// then listed from the newest to the oldest: each goes to the end of the ring,
// unless it has changed its place since. Once Fill has returned true it is an
// LruPolicy like any other.
class FillingLru : public LruPolicy {
 public:
  // REQUIRES: no node of `nodes`, which outlive this, is linked.
  explicit FillingLru(const Slab<Node>* nodes) : nodes_(nodes) {}

  void AddFront(Node& front, Node& back) override;
  void AddEarlier(Node& node) override;
  bool Fill(uint32_t nodes) override;
  // Forgets what waits.
  bool Shrink(uint32_t nodes) override;

 private:
  // By the last use; of one path, which was used at once, the deepest node is
  // the oldest. No split moves the end of a node.
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
