#include "core/explanation.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "core/listings.h"
#include "core/prefix_search.h"

namespace pando {
namespace {

constexpr size_t kMaxLocks = 100;
// The most nodes that continue a prefix which are looked at.
constexpr uint32_t kMaxChildren = 10'000;

size_t CommonTokens(const Token* cached, std::span<const Token> page) {
  const auto end = std::mismatch(page.begin(), page.end(), cached).first;
  return static_cast<size_t>(end - page.begin());
}

// The most tokens of `page` that a continuation of the cache at `position`
// begins with; empty when the cache ends there.
std::optional<size_t> LongestContinuation(TreePosition position,
                                          std::span<const Token> page,
                                          uint32_t page_tokens) {
  if (position.is_inside_node()) {
    return CommonTokens(position.node->tokens(page_tokens) +
                            size_t{position.pages_in_node} * page_tokens,
                        page);
  }
  std::optional<size_t> longest;
  uint32_t children = 0;
  for (const Node* child = position.node->first_child;
       child != nullptr && children < kMaxChildren;
       child = child->next_sibling, ++children) {
    longest = std::max(longest.value_or(0),
                       CommonTokens(child->tokens(page_tokens), page));
  }
  return longest;
}

void ExplainEnd(const CacheParts& parts, const FoundPrefix& found,
                const PrefixQuery& query, MatchExplanation& result) {
  const uint32_t page_tokens = parts.page_tokens();
  const uint32_t lookahead = LookaheadOf(query.ns);
  if (query.tokens.size() ==
      SpelledTokens(lookahead, found.pages, page_tokens)) {
    result.end = MatchEnd::kComplete;
    return;
  }
  if (found.pages == found.max_pages) {
    result.end = MatchEnd::kPageFloor;
    return;
  }
  const std::span<const Token> page = query.tokens.subspan(
      result.matched_tokens, SpelledTokens(lookahead, 1, page_tokens));
  const Node* const node = found.ns == nullptr ? nullptr : found.position.node;
  // Where a page was evicted, the tree had been split.
  if (node == nullptr || !found.position.is_inside_node()) {
    const auto evicted = parts.journal.FindEvicted(query.ns, node, page);
    if (evicted.has_value()) {
      result.end = MatchEnd::kEvicted;
      result.eviction = {evicted->reason,
                         parts.journal.time() - evicted->evicted_at};
      return;
    }
  }
  result.end = MatchEnd::kNeverCached;
  if (node == nullptr) return;
  const std::optional<size_t> common =
      LongestContinuation(found.position, page, page_tokens);
  if (!common.has_value()) return;
  result.end = MatchEnd::kDiverged;
  // A pair is common with its second token.
  const size_t units = *common - std::min<size_t>(*common, lookahead);
  result.diverged_at = result.matched_tokens + static_cast<uint32_t>(units);
}

// The locks on some or all of the prefix that ends at `end`. A lock on a
// descendant holds all of it; one elsewhere holds what its node has in common
// with it.
std::vector<FoundLock> LocksUpTo(const SessionTable& sessions,
                                 TreePosition end) {
  absl::flat_hash_set<const Node*> path;
  for (const Node* n = end.node; !n->is_root(); n = n->parent) path.insert(n);
  std::vector<FoundLock> found;
  sessions.ForEachLock([&](const LockRecord& lock) {
    if (lock.node->ns != end.node->ns) return;
    const Node* n = lock.node;
    while (!n->is_root() && !path.contains(n)) n = n->parent;
    if (n->is_root()) return;
    found.push_back({&lock, std::min(n->end_pages(), end.pages())});
  });
  return found;
}

}  // namespace

MatchExplanation ExplainMatch(const CacheParts& parts, const NamespaceKey& ns,
                              std::span<const Token> tokens) {
  const PrefixQuery query{.ns = ns, .tokens = tokens};
  const FoundPrefix found = FindPrefix(parts.tree, query, nullptr).value();
  MatchExplanation result;
  result.matched_tokens = found.pages * parts.page_tokens();
  ExplainEnd(parts, found, query, result);
  result.is_pending = parts.pending.Find(found, query) != nullptr;
  if (found.pages > 0) {
    result.locks = OldestLocks(parts, LocksUpTo(parts.sessions, found.position),
                               kMaxLocks);
  }
  return result;
}

bool HasMore(const RadixTree& tree, NamespaceNumber number,
             const NamespaceKey& than, std::span<const Token> tokens,
             uint32_t matched_tokens) {
  const Namespace* ns = tree.FindNamespace(number);
  if (ns == nullptr || *ns->key == than) return false;
  const uint32_t max_pages =
      WholePages(ns->lookahead(), tokens.size(), tree.page_tokens());
  const TreePosition end =
      tree.Walk(EndOf(*ns->root), tokens, max_pages, nullptr);
  return end.pages() * tree.page_tokens() > matched_tokens;
}

}  // namespace pando
