// Why a prompt matches as far as it does.

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "core/prefix_cache.h"

namespace pando {
namespace {

constexpr size_t kMaxLocks = 100;
constexpr size_t kMaxLongerNamespaces = 16;
// What is gone through at most: other namespaces, the largest first; nodes
// that continue a prefix.
constexpr uint32_t kMaxNamespaces = 1'000;
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

}  // namespace

MatchExplanation PrefixCache::ExplainMatch(const NamespaceKey& key,
                                           std::span<const Token> tokens) {
  MatchExplanation result;
  {
    absl::MutexLock hold(&mutex_);
    const PrefixQuery query{.ns = key, .tokens = tokens};
    const FoundPrefix found = FindPrefix(query, nullptr).value();
    result.matched_tokens = found.pages() * options_.page_tokens;
    ExplainEnd(found, query, result);
    result.is_pending = FindPending(found, query) != nullptr;
    if (found.pages() > 0) {
      result.locks = OldestLocks(LocksUpTo(found.position), kMaxLocks);
    }
  }
  result.longer_in_namespaces =
      NamespacesWithMore(key, tokens, result.matched_tokens);
  return result;
}

void PrefixCache::ExplainEnd(const FoundPrefix& found, const PrefixQuery& query,
                             MatchExplanation& result) {
  const uint32_t lookahead = LookaheadOf(query.ns);
  if (query.tokens.size() ==
      SpelledTokens(lookahead, found.pages(), options_.page_tokens)) {
    result.end = MatchEnd::kComplete;
    return;
  }
  if (found.pages() == found.max_pages) {
    result.end = MatchEnd::kPageFloor;
    return;
  }
  const std::span<const Token> page = query.tokens.subspan(
      result.matched_tokens, SpelledTokens(lookahead, 1, options_.page_tokens));
  // Where a page was evicted, the tree was split before.
  if (found.ns == nullptr || !found.position.is_inside_node()) {
    const auto ghost =
        ghosts_.Find(found.ns == nullptr ? GhostList::StartOf(query.ns)
                                         : PlaceAfter(*found.position.node),
                     GhostList::Fingerprint(page));
    if (ghost.has_value()) {
      result.end = MatchEnd::kEvicted;
      result.eviction = {ghost->reason, time_ - ghost->evicted_at};
      return;
    }
  }
  result.end = MatchEnd::kNeverCached;
  if (found.ns == nullptr) return;
  const std::optional<size_t> common =
      LongestContinuation(found.position, page, options_.page_tokens);
  if (!common.has_value()) return;
  result.end = MatchEnd::kDiverged;
  // A pair is common with its second token.
  const size_t units = *common - std::min<size_t>(*common, lookahead);
  result.diverged_at = result.matched_tokens + static_cast<uint32_t>(units);
}

// A lock on a descendant holds all of the prefix; one elsewhere holds what its
// node has in common with it.
std::vector<PrefixCache::FoundLock> PrefixCache::LocksUpTo(TreePosition end) {
  absl::flat_hash_set<const Node*> path;
  for (const Node* n = end.node; !n->is_root(); n = n->parent) path.insert(n);
  std::vector<FoundLock> found;
  sessions_.ForEachLock([&](const LockRecord& lock) {
    if (lock.node->ns != end.node->ns) return;
    const Node* n = lock.node;
    while (!n->is_root() && !path.contains(n)) n = n->parent;
    if (n->is_root()) return;
    found.push_back({&lock, std::min(n->end_pages(), end.pages())});
  });
  return found;
}

// Takes the mutex for each namespace anew, so that nobody waits for all.
std::vector<NamespaceNumber> PrefixCache::NamespacesWithMore(
    const NamespaceKey& than, std::span<const Token> tokens,
    uint32_t matched_tokens) {
  std::vector<NamespaceNumber> longer;
  for (const NamespaceInfo& other : ListNamespaces(kMaxNamespaces).namespaces) {
    if (longer.size() == kMaxLongerNamespaces) break;
    absl::MutexLock hold(&mutex_);
    const Namespace* ns = tree_.FindNamespace(other.number);
    if (ns == nullptr || *ns->key == than) continue;
    const uint32_t max_pages =
        WholePages(ns->lookahead(), tokens.size(), options_.page_tokens);
    const uint32_t pages =
        tree_.Walk(EndOf(*ns->root), tokens, max_pages, nullptr).pages();
    if (pages * options_.page_tokens > matched_tokens) {
      longer.push_back(other.number);
    }
  }
  return longer;
}

}  // namespace pando
