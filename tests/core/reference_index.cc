#include "tests/core/reference_index.h"

#include <algorithm>
#include <compare>
#include <limits>
#include <tuple>

namespace pando {
namespace {

using Node = ReferenceIndex::Node;

// Returns the key by which a policy compares nodes. The node with the smallest
// key is evicted first.
std::tuple<int64_t, int64_t, int64_t> KeyOf(EvictionPolicyKind policy,
                                            const Node& node) {
  const auto access = static_cast<int64_t>(node.last_access);
  const auto number = static_cast<int64_t>(node.number);
  switch (policy) {
    case EvictionPolicyKind::kLru:
      return {access, 0, number};
    case EvictionPolicyKind::kLfu:
      return {node.hits, access, number};
    case EvictionPolicyKind::kFifo:
      return {number, 0, 0};
    case EvictionPolicyKind::kMru:
      return {-access, 0, number};
    case EvictionPolicyKind::kFilo:
      return {-number, 0, 0};
    case EvictionPolicyKind::kPriority:
      return {node.priority, access, number};
    case EvictionPolicyKind::kReuse:
      break;  // ReferenceReuse finds the victim
    case EvictionPolicyKind::kSlru:
      return {node.hits >= 2 ? 1 : 0, access, number};
  }
  return {};
}

}  // namespace

Units UnitsOf(const NamespaceKey& ns, std::span<const Token> tokens) {
  if (!ns.bigram) return {tokens.begin(), tokens.end()};
  Units pairs;
  for (size_t i = 1; i < tokens.size(); ++i) {
    pairs.push_back(uint64_t{tokens[i - 1]} << 32 | tokens[i]);
  }
  return pairs;
}

std::vector<PageId> ReferenceIndex::Extend(Place& start,
                                           std::span<const Unit> units,
                                           size_t max_pages) const {
  std::vector<PageId> found;
  const Pages* pages = Find(start.ns);
  if (pages == nullptr) return found;
  max_pages = std::min(max_pages, units.size() / page_tokens_);
  for (size_t i = 0; i < max_pages; ++i) {
    const auto page = units.subspan(i * page_tokens_, page_tokens_);
    Units longer = start.prefix;
    longer.insert(longer.end(), page.begin(), page.end());
    const auto it = pages->find(longer);
    if (it == pages->end()) break;
    found.push_back(it->second.id);
    start.prefix = std::move(longer);
  }
  return found;
}

bool ReferenceIndex::IsCached(const Place& place) const {
  const Pages* pages = Find(place.ns);
  return place.prefix.empty() ||
         (pages != nullptr && pages->contains(place.prefix));
}

std::vector<const ReferenceIndex::Page*> ReferenceIndex::PathTo(
    const Place& place) const {
  std::vector<const Page*> path;
  Units prefix;
  for (const Unit unit : place.prefix) {
    prefix.push_back(unit);
    if (prefix.size() % page_tokens_ == 0) {
      path.push_back(&Find(place.ns)->at(prefix));
    }
  }
  return path;
}

std::vector<ReferenceIndex::Page*> ReferenceIndex::PathTo(const Place& place) {
  std::vector<Page*> path;
  for (const Page* page : std::as_const(*this).PathTo(place)) {
    path.push_back(const_cast<Page*>(page));
  }
  return path;
}

// Splits the node. The front part becomes the new node, and the old node keeps
// its end.
void ReferenceIndex::EndNodeAt(const Place& place) {
  if (place.prefix.empty()) return;
  Page& page = PagesOf(place.ns).at(place.prefix);
  if (page.node.has_value()) return;
  Node& back = *PagesOf(place.ns).at(EndOfNode(place)->first).node;
  page.node = back;
  page.node->number = ++nodes_made_;
  uint32_t front_pages = 0;
  for (const NodeRun& run : NodeRuns()) {
    if (run.node == &*page.node) front_pages = run.pages;
  }
  uint32_t& front_in_shadow = page.node->reuse.shadow_pages;
  front_in_shadow = std::min(back.reuse.shadow_pages, front_pages);
  back.reuse.shadow_pages -= front_in_shadow;
}

void ReferenceIndex::DropPartialNode(Place& place) const {
  while (!place.prefix.empty() &&
         !Find(place.ns)->at(place.prefix).node.has_value()) {
    place.prefix.resize(place.prefix.size() - page_tokens_);
  }
}

void ReferenceIndex::AddNode(Place& place, std::span<const Unit> units,
                             std::span<const PageId> pages) {
  for (size_t i = 0; i < pages.size(); ++i) {
    const auto page = units.subspan(i * page_tokens_, page_tokens_);
    place.prefix.insert(place.prefix.end(), page.begin(), page.end());
    PagesOf(place.ns)[place.prefix] = Page{.id = pages[i], .node = {}};
  }
  PagesOf(place.ns).at(place.prefix).node =
      Node{.number = ++nodes_made_,
           .last_access = now_ + 1,  // the insert touches the node next
           .priority = std::numeric_limits<int32_t>::min()};
}

void ReferenceIndex::Touch(const Place& place) {
  ++now_;
  for (Page* page : PathTo(place)) {
    if (!page->node.has_value()) continue;
    page->node->last_access = now_;
    page->node->has_ended = false;
  }
}

void ReferenceIndex::CountHit(const Place& place) {
  for (Page* page : PathTo(place)) {
    if (page->node.has_value()) ++page->node->hits;
  }
}

void ReferenceIndex::RaisePriority(const Place& place, int32_t priority) {
  for (Page* page : PathTo(place)) {
    if (!page->node.has_value()) continue;
    page->node->priority = std::max(page->node->priority, priority);
  }
}

void ReferenceIndex::EndPrefix(const Place& place) {
  Pages& pages = PagesOf(place.ns);
  for (auto& [end, page] : pages) {
    if (!page.node.has_value() || !StartsWith(place.prefix, end)) continue;
    const bool is_shared =
        std::ranges::any_of(pages, [&, &end = end](const auto& other) {
          return StartsWith(other.first, end) &&
                 !StartsWith(place.prefix, other.first);
        });
    if (is_shared) continue;
    page.node->has_ended = true;
    page.node->retained_until = absl::InfinitePast();
  }
}

void ReferenceIndex::Retain(const Place& place, absl::Time until) {
  if (place.prefix.empty()) return;
  Node& node = *PagesOf(place.ns).at(place.prefix).node;
  node.retained_until = std::max(node.retained_until, until);
}

void ReferenceIndex::Lock(const Place& place) {
  PagesOf(place.ns);
  for (Page* page : PathTo(place)) ++page->locks;
}

void ReferenceIndex::Unlock(const Place& place) {
  ++now_;
  for (Page* page : PathTo(place)) {
    if (--page->locks == 0 && page->node.has_value()) {
      page->node->last_access = now_;
    }
  }
}

void ReferenceIndex::MoveLock(const Place& from, const Place& to) {
  for (Page* page : PathTo(from)) --page->locks;
  for (Page* page : PathTo(to)) ++page->locks;
}

PrefixHandle ReferenceIndex::HandleOf(const Place& place) const {
  if (place.prefix.empty()) return {};
  return {EndOfNode(place)->second.node->number,
          static_cast<uint32_t>(place.prefix.size())};
}

std::optional<Place> ReferenceIndex::PlaceOf(const PrefixHandle& handle) const {
  for (const auto& [ns, pages] : namespaces_) {
    for (const auto& [prefix, page] : pages) {
      if (!page.node.has_value() || page.node->number != handle.node) continue;
      if (prefix.size() < handle.tokens) return {};
      return Place{ns, {prefix.begin(), prefix.begin() + handle.tokens}};
    }
  }
  return {};
}

std::vector<std::pair<Place, const ReferenceIndex::Node*>>
ReferenceIndex::UnlockedLeaves(const Filter& may_evict) const {
  std::vector<std::pair<Place, const Node*>> leaves;
  for (const auto& [ns, pages] : namespaces_) {
    if (!may_evict(ns)) continue;
    for (auto page = pages.begin(); page != pages.end(); ++page) {
      const auto next = std::next(page);
      const bool is_leaf =
          next == pages.end() || !StartsWith(next->first, page->first);
      if (!is_leaf || page->second.locks > 0) continue;
      leaves.emplace_back(Place{ns, page->first}, &*page->second.node);
    }
  }
  return leaves;
}

std::vector<ReferenceIndex::NodeRun> ReferenceIndex::NodeRuns() {
  std::vector<NodeRun> runs;
  for (auto& [ns, pages] : namespaces_) {
    for (auto& [prefix, page] : pages) {
      if (!page.node.has_value()) continue;
      Units front = prefix;
      uint32_t count = 0;
      do {
        front.resize(front.size() - page_tokens_);
        ++count;
      } while (!front.empty() && !pages.at(front).node.has_value());
      runs.push_back({{ns, prefix}, &*page.node, count});
    }
  }
  return runs;
}

std::optional<Place> ReferenceIndex::NextEnded(const Filter& may_evict) const {
  std::optional<Place> first;
  const Node* best = nullptr;
  for (const auto& [place, node] : UnlockedLeaves(may_evict)) {
    if (!node->has_ended) continue;
    if (best == nullptr || std::tuple(node->last_access, node->number) <
                               std::tuple(best->last_access, best->number)) {
      best = node;
      first = place;
    }
  }
  return first;
}

std::optional<Place> ReferenceIndex::NextVictim(EvictionPolicyKind policy,
                                                const Filter& may_evict) const {
  std::optional<Place> victim;
  const Node* best = nullptr;
  for (const auto& [place, node] : UnlockedLeaves(may_evict)) {
    if (best == nullptr || KeyOf(policy, *node) < KeyOf(policy, *best)) {
      best = node;
      victim = place;
    }
  }
  return victim;
}

// If pages of the node remain, the node ends one page earlier.
void ReferenceIndex::Remove(const Place& last_page) {
  Pages& pages = PagesOf(last_page.ns);
  const Node node = *pages.at(last_page.prefix).node;
  pages.erase(last_page.prefix);
  Units before = last_page.prefix;
  before.resize(before.size() - page_tokens_);
  if (before.empty()) return;
  Page& end = pages.at(before);
  if (!end.node.has_value()) end.node = node;
}

const ReferenceIndex::Pages* ReferenceIndex::Find(
    const NamespaceKey& ns) const {
  for (const auto& [key, pages] : namespaces_) {
    if (key == ns) return &pages;
  }
  return nullptr;
}

ReferenceIndex::Pages& ReferenceIndex::PagesOf(const NamespaceKey& ns) {
  if (Find(ns) == nullptr) namespaces_.emplace_back(ns, Pages());
  return const_cast<Pages&>(*Find(ns));
}

bool ReferenceIndex::StartsWith(const Units& units, const Units& prefix) {
  return units.size() >= prefix.size() &&
         std::equal(prefix.begin(), prefix.end(), units.begin());
}

// Inside a node, each page has exactly one page after it, which comes next in
// the map.
ReferenceIndex::Pages::const_iterator ReferenceIndex::EndOfNode(
    const Place& place) const {
  auto it = Find(place.ns)->find(place.prefix);
  while (!it->second.node.has_value()) ++it;
  return it;
}

}  // namespace pando
