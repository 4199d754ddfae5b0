#include "core/operators/eviction_work.h"

#include <algorithm>

namespace pando {

bool EvictionWork::Step(CacheParts& parts) {
  const uint32_t evicted =
      parts.budget.Evict(std::min(pages_ - evicted_pages_, kStepEvictedPages),
                         EvictionReason::kRequest);
  evicted_pages_ += evicted;
  return evicted == 0 || evicted_pages_ == pages_;
}

bool FlushWork::FindsNothing(const RadixTree& tree) {
  if (is_all_) return false;
  const Namespace* const ns =
      ns_.has_value() ? tree.FindNamespace(*ns_) : tree.FindNamespace(*key_);
  if (ns == nullptr) return true;
  ns_ = ns->number;
  key_ = *ns->key;
  return false;
}

// Goes through the nodes cell by cell. A node that is not a leaf yet becomes
// one when its last descendant is evicted, and is then evicted with that.
bool FlushWork::Step(CacheParts& parts) {
  const RadixTree& tree = parts.tree;
  if (next_ == 0 && FindsNothing(tree)) return true;
  const uint32_t cells = tree.node_cells();
  const PageBudget::Flushed flushed =
      parts.budget.Flush(next_, std::min(cells, next_ + kStepCells), ns_,
                         kStepEvictedPages, rest_);
  result_.evicted_pages += flushed.pages;
  next_ = flushed.next;
  rest_ = flushed.rest;
  if (next_ < cells || rest_.has_value()) return false;
  if (!ns_.has_value()) {
    result_.protected_pages = tree.protected_pages();
  } else if (const Namespace* ns = tree.FindNamespace(*ns_); ns != nullptr) {
    result_.protected_pages = ns->protected_pages;
  }
  return true;
}

}  // namespace pando
