#include "service/console/forest.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"

namespace pando {
namespace {

constexpr std::string_view kAll = "all";
constexpr std::string_view kNamespace = "namespace-";
constexpr std::string_view kNode = "node-";

Totals TotalsOf(const NodeCopy& node) {
  return {.nodes = 1,
          .pages = node.pages,
          .locked_pages = node.locks > 0 ? node.pages : 0,
          .idle = node.idle};
}

std::string Numbered(std::string_view word, uint64_t number) {
  return std::string(word) + std::to_string(number);
}

std::optional<uint64_t> NumberAfter(std::string_view word,
                                    std::string_view name) {
  if (!name.starts_with(word)) return std::nullopt;
  uint64_t number = 0;
  if (!absl::SimpleAtoi(std::string(name.substr(word.size())), &number)) {
    return std::nullopt;
  }
  return number;
}

template <typename Map>
std::optional<Forest::Index> FindIn(const Map& map,
                                    const typename Map::key_type& key) {
  const auto found = map.find(key);
  if (found == map.end()) return std::nullopt;
  return found->second;
}

}  // namespace

void Totals::Add(const Totals& other) {
  nodes += other.nodes;
  pages += other.pages;
  locked_pages += other.locked_pages;
  idle = std::min(idle, other.idle);
}

Forest::Forest(TreeCopy copy) : copy_(std::move(copy)) {
  branches_.reserve(1 + copy_.namespaces.size() + copy_.nodes.size());
  branches_.push_back({});
  AddNamespaces();
  AddNodes();
  SumUp();
}

void Forest::AddNamespaces() {
  for (const NamespaceCopy& ns : copy_.namespaces) {
    if (!namespaces_.try_emplace(ns.number, size()).second) continue;
    branches_.push_back({.parent = kEverything, .ns = &ns});
  }
}

// A node begins where its parent ends. So in the order of where nodes begin,
// each node comes after its parent.
void Forest::AddNodes() {
  std::vector<const NodeCopy*> ordered;
  ordered.reserve(copy_.nodes.size());
  for (const NodeCopy& node : copy_.nodes) ordered.push_back(&node);
  std::sort(ordered.begin(), ordered.end(), [](const auto* a, const auto* b) {
    return std::pair(a->begin_page, a->number) <
           std::pair(b->begin_page, b->number);
  });
  absl::flat_hash_map<NodeHandle, Index> added;
  added.reserve(ordered.size());
  nodes_.reserve(ordered.size());
  for (const NodeCopy* node : ordered) {
    const auto parent = node->parent == 0 ? FindIn(namespaces_, node->ns)
                                          : FindIn(added, node->parent);
    if (!parent.has_value() || nodes_.contains(node->number)) continue;
    const NodeCopy* above = branches_[*parent].node;
    if (node->begin_page != (above == nullptr ? 0 : above->end_page())) {
      continue;
    }
    added[node->handle] = nodes_[node->number] = size();
    branches_.push_back({.parent = *parent,
                         .ns = branches_[*parent].ns,
                         .node = node,
                         .below = TotalsOf(*node),
                         .oldest = node->number});
  }
}

void Forest::SumUp() {
  for (Index i = size(); i-- > 1;) {
    Branch& parent = branches_[branches_[i].parent];
    parent.below.Add(branches_[i].below);
    parent.oldest = std::min(parent.oldest, branches_[i].oldest);
    parent.children.push_back(i);
  }
  for (Branch& branch : branches_) {
    std::sort(branch.children.begin(), branch.children.end(),
              [this](Index a, Index b) {
                const uint32_t pages_a = branches_[a].below.pages;
                const uint32_t pages_b = branches_[b].below.pages;
                return pages_a != pages_b ? pages_a > pages_b : a < b;
              });
  }
}

std::string Forest::NameOf(Index index) const {
  const Branch& branch = branches_[index];
  if (branch.node != nullptr) return Numbered(kNode, branch.node->number);
  if (branch.ns == nullptr) return std::string(kAll);
  return Numbered(kNamespace, branch.ns->number.value());
}

std::optional<Forest::Index> Forest::Find(std::string_view name) const {
  if (name == kAll) return kEverything;
  if (const auto number = NumberAfter(kNode, name)) return FindNode(*number);
  if (const auto number = NumberAfter(kNamespace, name)) {
    return FindNamespace(NamespaceNumber(*number));
  }
  return std::nullopt;
}

std::optional<Forest::Index> Forest::FindNode(uint64_t number) const {
  return FindIn(nodes_, number);
}

std::optional<Forest::Index> Forest::FindNamespace(
    NamespaceNumber number) const {
  return FindIn(namespaces_, number);
}

std::vector<Forest::Index> Forest::PathTo(Index index) const {
  std::vector<Index> path = {index};
  while (path.back() != kEverything) {
    path.push_back(branches_[path.back()].parent);
  }
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace pando
