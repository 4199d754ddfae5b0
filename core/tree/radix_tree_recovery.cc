// RadixTree::Recover: the tree of an earlier process, built from the ledger.

#include <algorithm>
#include <utility>

#include "core/tree/radix_tree.h"

namespace pando {

std::vector<Namespace*> RadixTree::RecoverNamespaces() {
  std::vector<Namespace*> namespaces(ledger_->namespace_cells());
  for (uint32_t cell = 0; cell < namespaces.size(); ++cell) {
    const std::optional<NamespaceKey> key = ledger_->NamespaceIn(cell);
    if (!key.has_value()) continue;
    if (FindNamespace(*key) != nullptr) {  // no process writes it down twice
      ledger_->RemoveNamespace(cell);
    } else {
      namespaces[cell] = &MakeNamespace(*key, cell);
    }
  }
  return namespaces;
}

// When a segment was repacked as its process died, the copies of its slices may
// be in the ledger, too. The segment is larger than its copies.
std::vector<SegmentRef> RadixTree::RecoverSegments(
    const std::vector<Namespace*>& namespaces) {
  std::vector<SegmentRef> found;
  SegmentArena& arena = ledger_->arena();
  arena.Recover([&](std::byte* cell, size_t bytes) {
    SegmentRef segment = SegmentRef::TakeOver(cell, bytes, &arena);
    if (!segment) return false;
    found.push_back(std::move(segment));
    return true;
  });
  std::ranges::stable_sort(found, std::ranges::greater(),
                           [](const auto& s) { return s->page_count(); });
  std::vector<bool> is_claimed(max_pages_ + 1);
  std::erase_if(found, [&](const SegmentRef& segment) {
    const SegmentFacts& facts = segment->facts();
    if (facts.namespace_cell >= namespaces.size()) return true;
    const Namespace* const ns = namespaces[facts.namespace_cell];
    if (ns == nullptr ||
        facts.token_count !=
            SpelledTokens(ns->lookahead(), facts.page_count, page_tokens_)) {
      return true;
    }
    const std::span pages(segment->pages(), facts.used_pages);
    // Its insert was not answered yet.
    if (std::ranges::any_of(pages, [&](PageId page) {
          return page.value() <= max_pages_ &&
                 ledger_->records()[page.value()].state != PageState::kSealed;
        })) {
      return true;
    }
    for (size_t i = 0; i < pages.size(); ++i) {
      const uint32_t page = pages[i].value();
      if (page > 0 && page <= max_pages_ && !is_claimed[page]) {
        is_claimed[page] = true;
        continue;
      }
      for (PageId claimed : pages.first(i)) is_claimed[claimed.value()] = false;
      return true;
    }
    return false;
  });
  return found;
}

std::optional<TreePosition> RadixTree::FindPlace(
    const Segment& segment, const Namespace& ns, std::span<Node* const> leaves,
    std::span<const uint32_t> segment_of) const {
  const SegmentFacts& facts = segment.facts();
  TreePosition place = EndOf(*ns.root);
  if (facts.depth_pages > 0) {
    if (facts.before.value() >= segment_of.size()) return std::nullopt;
    const uint32_t number = segment_of[facts.before.value()];
    if (number >= leaves.size() || leaves[number]->ns != &ns) {
      return std::nullopt;
    }
    const std::optional<TreePosition> found =
        FindPosition(Slab<Node>::HandleOf(*leaves[number]), facts.depth_pages);
    if (!found.has_value() ||
        found->node->pages()[found->pages_in_node - 1] != facts.before) {
      return std::nullopt;
    }
    place = *found;
  }
  // Another segment may not begin with the same page.
  const TreePosition end =
      Walk(place, {segment.tokens(), segment.token_count()}, 1, nullptr);
  if (end.pages() > facts.depth_pages) return std::nullopt;
  return place;
}

std::vector<bool> RadixTree::Recover() {
  const std::vector<Namespace*> namespaces = RecoverNamespaces();
  std::vector<SegmentRef> segments = RecoverSegments(namespaces);
  // A segment comes after those that it continues.
  std::ranges::stable_sort(
      segments, {}, [](const auto& s) { return s->facts().depth_pages; });
  std::vector<bool> is_cached(max_pages_ + 1);
  std::vector<uint32_t> segment_of(max_pages_ + 1, max_pages_);
  std::vector<Node*> leaves;
  for (SegmentRef& segment : segments) {
    Namespace& ns = *namespaces[segment->facts().namespace_cell];
    const std::optional<TreePosition> place =
        FindPlace(*segment, ns, leaves, segment_of);
    if (!place.has_value()) continue;
    for (PageId page :
         std::span(segment->pages(), segment->facts().used_pages)) {
      is_cached[page.value()] = true;
      segment_of[page.value()] = static_cast<uint32_t>(leaves.size());
    }
    const Use use{.priority = segment->facts().priority};
    leaves.push_back(&Attach(NodeEndingAt(*place), std::move(segment), use));
  }
  for (Node* leaf : leaves) {
    const SegmentFacts& facts = leaf->segment->facts();
    if (facts.locked_pages == 0) continue;
    const uint32_t locked = std::min(facts.locked_pages, facts.used_pages);
    Node& last = NodeEndingAt(
        *FindPosition(Slab<Node>::HandleOf(*leaf), facts.depth_pages + locked));
    earlier_locked_.push_back({&last, facts.locked_pages});
  }
  std::ranges::sort(leaves, {}, [](const Node* leaf) {
    return leaf->segment->facts().last_access;
  });
  for (Node* leaf : leaves) {
    const SegmentFacts& facts = leaf->segment->facts();
    Touch(*leaf, {.least_hits = facts.hit_count, .priority = facts.priority});
  }
  for (Namespace* ns : namespaces) {
    if (ns != nullptr) Prune(*ns);
  }
  return is_cached;
}

}  // namespace pando
