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

bool RadixTree::IsPlausible(const Segment& segment,
                            const std::vector<Namespace*>& namespaces) const {
  const SegmentFacts& facts = segment.facts();
  if (facts.namespace_cell >= namespaces.size()) return false;
  const Namespace* const ns = namespaces[facts.namespace_cell];
  if (ns == nullptr ||
      facts.token_count !=
          SpelledTokens(ns->lookahead(), facts.page_count, page_tokens_)) {
    return false;
  }
  // If a page is not sealed, its insert was not answered: such a segment is
  // dropped, because the page belongs to the worker still.
  return std::ranges::all_of(
      std::span(segment.pages(), facts.used_pages), [this](PageId page) {
        return page.value() > 0 && page.value() <= max_pages_ &&
               ledger_->records()[page.value()].state == PageState::kSealed;
      });
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
    if (segment->page_count() == 0) {
      earlier_prompts_.emplace(segment->ledger_place(), std::move(segment));
    } else {
      found.push_back(std::move(segment));
    }
    return true;
  });
  std::erase_if(found, [&](const SegmentRef& segment) {
    return !IsPlausible(*segment, namespaces);
  });
  std::ranges::stable_sort(found, std::ranges::greater(),
                           [](const auto& s) { return s->page_count(); });
  std::vector<bool> is_claimed(max_pages_ + 1);
  std::erase_if(found, [&](const SegmentRef& segment) {
    const std::span pages(segment->pages(), segment->used_pages());
    for (size_t i = 0; i < pages.size(); ++i) {
      if (!is_claimed[pages[i].value()]) {
        is_claimed[pages[i].value()] = true;
        continue;
      }
      for (PageId own : pages.first(i)) is_claimed[own.value()] = false;
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

// A node was used when a node below it was, so each gets the latest use below
// it.
void RadixTree::RecoverUses(std::span<Node* const> leaves) {
  std::vector<Node*> by_use(leaves.begin(), leaves.end());
  std::ranges::sort(by_use, {}, [](const Node* leaf) {
    return leaf->segment->facts().last_access;
  });
  for (Node* leaf : by_use) {
    leaf->last_access = ++now_;
    leaf->hit_count = leaf->segment->facts().hit_count;
    NoteUseInLedger(*leaf);
  }
  for (size_t i = leaves.size(); i-- > 0;) {
    for (Node* n = leaves[i]; !n->parent->is_root(); n = n->parent) {
      Node& parent = *n->parent;
      parent.last_access = std::max(parent.last_access, n->last_access);
      parent.hit_count = std::max(parent.hit_count, n->hit_count);
      parent.priority = std::max(parent.priority, n->priority);
      if (&*parent.segment != &*leaves[i]->segment) break;
    }
  }
}

std::vector<bool> RadixTree::Recover() {
  // The order of eviction is built when all uses are known, and the learner
  // does not take what was cached for new: as after a change of the policy.
  const EvictionPolicyKind policy = policy_;
  SetPolicy(policy == EvictionPolicyKind::kFifo ? EvictionPolicyKind::kFilo
                                                : EvictionPolicyKind::kFifo);
  std::unique_ptr<ReuseLearner> learner = std::move(learner_);
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
    for (PageId page : std::span(segment->pages(), segment->used_pages())) {
      is_cached[page.value()] = true;
      segment_of[page.value()] = static_cast<uint32_t>(leaves.size());
    }
    const Use use{.priority = segment->facts().priority};
    leaves.push_back(&Attach(NodeEndingAt(*place), std::move(segment), use));
  }
  RecoverUses(leaves);
  for (Node* leaf : leaves) {
    const SegmentFacts& facts = leaf->segment->facts();
    if (facts.locked_pages == 0) continue;
    const uint32_t locked = std::min(facts.locked_pages, facts.used_pages);
    Node& last = NodeEndingAt(
        *FindPosition(Slab<Node>::HandleOf(*leaf), facts.depth_pages + locked));
    earlier_locked_.push_back({&last, facts.locked_pages});
  }
  learner_ = std::move(learner);
  SetPolicy(policy);
  return is_cached;
}

void RadixTree::PruneRecovered() {
  std::vector<Namespace*> all;
  ForEachNamespace([&](Namespace& ns) { all.push_back(&ns); });
  for (Namespace* ns : all) Prune(*ns);
}

std::vector<Node*> RadixTree::NodesEndingWith(std::span<const PageId> pages) {
  struct End {
    Slab<Node>::Handle node;  // a split moves no node's end, so it stays here
    uint32_t pages;
  };
  std::vector<bool> is_wanted(max_pages_ + 1);
  for (PageId page : pages) is_wanted[page.value()] = true;
  absl::flat_hash_map<PageId, End> ends;
  nodes_.ForEach([&](const Node& node) {
    if (node.is_root()) return;
    for (uint32_t i = 0; i < node.page_count; ++i) {
      const PageId page = node.pages()[i];
      if (!is_wanted[page.value()]) continue;
      ends[page] = {Slab<Node>::HandleOf(node), node.depth_pages + i + 1};
    }
  });
  std::vector<Node*> found;
  found.reserve(pages.size());
  for (PageId page : pages) {
    const auto end = ends.find(page);
    found.push_back(end == ends.end()
                        ? nullptr
                        : &NodeEndingAt(*FindPosition(end->second.node,
                                                      end->second.pages)));
  }
  return found;
}

}  // namespace pando
