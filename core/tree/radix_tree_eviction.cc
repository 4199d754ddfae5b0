// How pages leave RadixTree: in the order of the policy, or from one cell.

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "core/eviction/eviction_rank.h"
#include "core/tree/radix_tree.h"

namespace pando {
namespace {

// A rank that comes before all ranks of any policy.
EvictionRank RankOfEnded(const Node& leaf) {
  return {std::numeric_limits<int64_t>::min(), leaf.last_access, leaf.id};
}

}  // namespace

void RadixTree::Evict(uint32_t count, std::span<uint32_t> limits,
                      TrimVisitor visit, std::vector<PageId>& evicted) {
  uint32_t spared = 0;
  while (count > 0) {
    Node* victim = NextVictim(limits);
    if (victim == nullptr) return;
    victim = &SpareRetained(*victim, spared);
    CHECK(victim->is_leaf() && !victim->is_locked());
    uint32_t& limit = limits[victim->ns->quota_class];
    const uint32_t pages = std::min({count, victim->page_count, limit});
    count -= pages;
    limit -= pages;
    if (pages == victim->page_count) {
      PrefetchAfter(*victim);
    } else {
      // A trimmed leaf is not retained any more; otherwise Evict would trim one
      // retained leaf after the other.
      victim->retained_seconds = 0;
    }
    TrimTail(*victim, pages, /*is_evicted=*/true, visit, evicted);
  }
}

// While one victim is removed, prefetches the index entry of the likely next
// victim, which in a large tree is in no CPU cache.
void RadixTree::PrefetchAfter(const Node& victim) const {
  if (!is_linked_) return;
  const Node* next = victim.newer;
  if (next != nullptr && !next->is_root()) index_.Prefetch(*next);
}

// The victim that goes first among those of the classes that may lose pages.
Node* RadixTree::NextVictim(std::span<const uint32_t> limits) const {
  Node* first = nullptr;
  EvictionRank first_rank = {};
  for (size_t c = 0; c < classes_.size(); ++c) {
    if (limits[c] == 0) continue;
    EvictionPolicy& order = classes_[c].order.now();
    Node* const ended = classes_[c].ended.First();
    Node* const victim = ended != nullptr ? ended : order.Victim();
    if (victim == nullptr) continue;
    const EvictionRank rank =
        ended != nullptr ? RankOfEnded(*ended) : order.RankOf(*victim);
    if (first == nullptr || rank < first_rank) {
      first = victim;
      first_rank = rank;
    }
  }
  return first;
}

std::optional<uint32_t> RadixTree::EvictFrom(uint32_t cell,
                                             std::optional<NamespaceNumber> ns,
                                             uint32_t count, TrimVisitor visit,
                                             std::vector<PageId>& evicted) {
  Node* node = nodes_.FindAt(cell);
  if (node == nullptr || (ns.has_value() && node->ns->number != *ns)) {
    return std::nullopt;
  }
  while (!node->is_root() && node->is_leaf() && !node->is_locked()) {
    if (count == 0) return Slab<Node>::IndexOf(*node);
    Node* const parent = node->parent;
    // The root goes with the last node of its namespace.
    const bool is_last = parent->is_root() && !parent->is_locked() &&
                         parent->first_child->next_sibling == nullptr;
    const uint32_t pages = std::min(count, node->page_count);
    const bool is_whole = pages == node->page_count;
    count -= pages;
    TrimTail(*node, pages, /*is_evicted=*/false, visit, evicted);
    if (!is_whole) continue;
    if (is_last) return std::nullopt;
    node = parent;
  }
  return std::nullopt;
}

void RadixTree::TrimTail(Node& leaf, uint32_t pages, bool is_evicted,
                         TrimVisitor visit, std::vector<PageId>& trimmed) {
  visit(leaf, leaf.page_count - pages);
  const std::span<const PageId> tail = leaf.pages().last(pages);
  trimmed.insert(trimmed.end(), tail.begin(), tail.end());
  if (IsAudited(leaf)) audit_->RemovePages(tail);
  CountPages(*leaf.ns, -int64_t{pages}, 0);
  leaf.segment.NoteEvicted(pages);
  if (pages == leaf.page_count) {
    RemoveLeaf(leaf, is_evicted);
    return;
  }
  if (learner_ != nullptr) {
    learner_->Trim(leaf, leaf.page_count - pages, is_evicted);
  }
  {
    const AuditedChange change(*this, leaf);
    leaf.page_count -= pages;
  }
  RepackAround(leaf);
}

void RadixTree::RemoveLeaf(Node& leaf, bool is_evicted) {
  Node& parent = *leaf.parent;
  const bool shares_segment =
      !parent.is_root() && &*parent.segment == &*leaf.segment;
  if (IsAudited(leaf)) audit_->Remove(leaf);
  OrderOf(leaf).Remove(leaf);
  if (leaf.has_ended) EndedOf(leaf).Remove(leaf);
  if (learner_ != nullptr) learner_->Trim(leaf, 0, is_evicted);
  {
    const AuditedChange change(*this, parent);
    RemoveChild(leaf);
  }
  nodes_.Delete(Slab<Node>::HandleOf(leaf));
  if (parent.is_root()) {
    Prune(*parent.ns);
    return;
  }
  if (parent.is_leaf() && !parent.is_locked()) {
    OrderOf(parent).LeafChanged(parent);
    if (parent.has_ended) EndedOf(parent).Add(parent);
  }
  if (shares_segment) {
    RepackAround(parent);
  } else {
    NoteUseInLedger(parent);  // it was used whenever the leaf was
  }
}

// Slices of a segment lie on one path of the tree. When the slices that are
// left use less than half of their segment, each gets a segment of its own, so
// that evicted tokens do not stay in memory. Copies no more than was evicted.
void RadixTree::RepackAround(Node& node) {
  SegmentRef shared = node.segment;
  if (shared->used_pages() * 2 > shared->page_count()) return;
  for (Node* n = &node; !n->is_root() && &*n->segment == &*shared;
       n = n->parent) {
    const size_t tokens =
        SpelledTokens(n->ns->lookahead(), n->page_count, page_tokens_);
    SegmentRef own = SegmentRef::Copy({n->tokens(page_tokens_), tokens},
                                      n->pages(), arena());
    const std::span<const PagePrint> prints = n->prints();
    if (!prints.empty()) std::ranges::copy(prints, own.MakePrints());
    n->segment = std::move(own);
    n->first_page = 0;
    if (ledger_ == nullptr) continue;
    NoteUseInLedger(*n);
    if (n->is_locked()) n->segment.NoteLocked(n->page_count);
    PublishSegment(*n);
  }
  // Until here both are in the ledger, and Recover takes the larger one.
  shared.Withdraw();
}

}  // namespace pando
