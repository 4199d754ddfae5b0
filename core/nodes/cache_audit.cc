#include "core/nodes/cache_audit.h"

namespace pando {

CacheAudit::CacheAudit(uint32_t capacity_pages, uint32_t quota_classes,
                       uint32_t namespaces)
    : by_class_(quota_classes),
      unlocked_leaves_(quota_classes),
      ended_leaves_(quota_classes),
      in_tree_(capacity_pages),
      reserved_(quota_classes) {
  by_namespace_.reserve(namespaces);
}

void CacheAudit::Count(const Node& node, int sign) {
  if (node.is_root()) {
    roots_ += sign;
    return;
  }
  all_.Count(node, sign);
  by_class_[node.ns->quota_class].Count(node, sign);
  Sums& sums = by_namespace_[node.ns];
  sums.Count(node, sign);
  if (sums == Sums()) by_namespace_.erase(node.ns);
  if (!node.is_locked()) {
    if (node.is_leaf()) unlocked_leaves_[node.ns->quota_class] += sign;
    if (node.is_ended_leaf()) ended_leaves_[node.ns->quota_class] += sign;
    return;
  }
  int64_t& locked = locked_children_[node.parent];
  locked += sign;
  if (locked == 0) locked_children_.erase(node.parent);
}

void CacheAudit::AddPages(std::span<const PageId> pages) {
  for (PageId page : pages) {
    if (in_tree_[page.value()]) in_two_nodes_.push_back(page);
    in_tree_[page.value()] = true;
  }
}

void CacheAudit::RemovePages(std::span<const PageId> pages) {
  for (PageId page : pages) in_tree_[page.value()] = false;
}

// `node` is not read while the locks are added, when seen_nodes_ is 0: a
// damaged lock may name an address without a node. Later calls come with
// changes of the tree, whose nodes exist.
void CacheAudit::CountLock(const Node* node, int sign) {
  auto [it, is_new] = locks_on_.try_emplace(node);
  NodeLocks& locks = it->second;
  if (is_new && seen_nodes_ > 0) {
    locks.is_seen = Slab<Node>::IndexOf(*node) < seen_nodes_;
  }
  locks.count += sign;
  if (!locks.is_seen) unseen_locks_ += sign;
  if (locks.count == 0) locks_on_.erase(it);
}

int64_t CacheAudit::ExpectedLockCount(const Node& node) {
  int64_t expected = 0;
  if (const auto it = locked_children_.find(&node);
      it != locked_children_.end()) {
    expected += it->second;
  }
  if (const auto it = locks_on_.find(&node); it != locks_on_.end()) {
    expected += it->second.count;
    if (!it->second.is_seen) unseen_locks_ -= it->second.count;
    it->second.is_seen = true;
  }
  return expected;
}

void CacheAudit::Count(PageState state, uint32_t quota_class, int sign) {
  by_state_[static_cast<size_t>(state)] += sign;
  if (state == PageState::kReserved) reserved_[quota_class] += sign;
}

}  // namespace pando
