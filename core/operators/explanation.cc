#include "core/operators/explanation.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "core/tree/prefix_search.h"

namespace pando {
namespace {

constexpr size_t kMaxLocks = 100;
// At most so many continuations of a prefix are compared.
constexpr uint32_t kMaxChildren = 10'000;
// At most kMaxNamespaces other namespaces are searched, the largest first, and
// at most kMaxLongerNamespaces are named.
constexpr uint32_t kMaxNamespaces = 1'000;
constexpr size_t kMaxLongerNamespaces = 16;
// A step visits at most so many nodes on the way from locks to the prefix, and
// compares at most so many tokens in other namespaces.
constexpr uint32_t kStepNodes = 20'000;
constexpr uint64_t kStepTokens = 1'000'000;

size_t CommonTokens(const Token* cached, std::span<const Token> page) {
  const auto end = std::mismatch(page.begin(), page.end(), cached).first;
  return static_cast<size_t>(end - page.begin());
}

// The most tokens that `page` has in common with a page that is cached after
// `position`; none if nothing is cached there.
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
  // Only the end of a node can be where a page was evicted.
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
  // In a bigram namespace, a pair is common only if its second token is, too.
  const size_t units = *common - std::min<size_t>(*common, lookahead);
  result.diverged_at = result.matched_tokens + static_cast<uint32_t>(units);
}

// Counts the pages that the prefix of a node shares with the prefix that ends
// at `end`. Remembers the answer for each node that it passes on the way up, so
// that many queries together pass each node once.
class CommonPages {
 public:
  explicit CommonPages(TreePosition end) {
    for (const Node* n = end.node; !n->is_root(); n = n->parent) {
      common_[n] = std::min(n->end_pages(), end.pages());
    }
    passed_ = static_cast<uint32_t>(common_.size());
  }

  uint32_t Of(const Node& node) {
    std::vector<const Node*> unknown;
    uint32_t common = 0;
    for (const Node* n = &node; !n->is_root(); n = n->parent) {
      if (const auto known = common_.find(n); known != common_.end()) {
        common = known->second;
        break;
      }
      unknown.push_back(n);
    }
    for (const Node* n : unknown) common_[n] = common;
    passed_ += static_cast<uint32_t>(unknown.size());
    return common;
  }

  uint32_t passed() const { return passed_; }

 private:
  absl::flat_hash_map<const Node*, uint32_t> common_;
  uint32_t passed_ = 0;
};

}  // namespace

Explanation::Explanation(NamespaceKey ns, std::span<const Token> tokens)
    : ns_(std::move(ns)),
      tokens_(tokens),
      locks_(kMaxLocks),
      namespaces_(kMaxNamespaces) {}

bool Explanation::Step(CacheParts& parts) {
  switch (stage_) {
    case Stage::kMatch:
      ExplainMatch(parts);
      stage_ = Stage::kLocks;
      break;
    case Stage::kLocks:
      if (FindLocks(parts)) stage_ = Stage::kNamespaces;
      break;
    case Stage::kNamespaces:
      if (namespaces_.Step(parts)) {
        others_ = namespaces_.Take().namespaces;
        stage_ = Stage::kOthers;
      }
      break;
    case Stage::kOthers:
      return FindLongerMatches(parts.tree);
  }
  return false;
}

MatchExplanation Explanation::Take() {
  result_.locks = locks_.Take().locks;
  return std::exchange(result_, {});
}

void Explanation::ExplainMatch(const CacheParts& parts) {
  const PrefixQuery query{.ns = ns_, .tokens = tokens_};
  const FoundPrefix found = FindPrefix(parts.tree, query, nullptr).value();
  result_.matched_tokens = found.pages * parts.page_tokens();
  ExplainEnd(parts, found, query, result_);
  result_.is_pending = parts.pending.Find(found, query) != nullptr;
}

// A lock on a descendant of the prefix's end protects the whole prefix. A lock
// elsewhere protects what its node has in common with the prefix. The prefix is
// looked up anew in each step, as the tree may have changed.
bool Explanation::FindLocks(const CacheParts& parts) {
  const FoundPrefix found =
      FindPrefix(parts.tree, {.ns = ns_, .tokens = tokens_}, nullptr).value();
  if (found.pages == 0) return true;
  CommonPages common(found.position);
  const uint32_t cells = parts.sessions.lock_cells();
  for (uint32_t i = 0; i < kStepCells && next_lock_ < cells; ++i) {
    const LockRecord* lock = parts.sessions.LockAt(next_lock_++);
    if (lock == nullptr || lock->node->ns != found.ns) continue;
    const uint32_t pages = common.Of(*lock->node);
    if (pages > 0) locks_.Add(parts, *lock, pages);
    if (common.passed() > kStepNodes) break;
  }
  return next_lock_ == cells;
}

bool Explanation::FindLongerMatches(const RadixTree& tree) {
  for (uint64_t compared = 0; compared < kStepTokens; ++next_other_) {
    if (next_other_ == others_.size() ||
        result_.longer_in_namespaces.size() == kMaxLongerNamespaces) {
      return true;
    }
    const Namespace* ns = tree.FindNamespace(others_[next_other_].number);
    if (ns == nullptr || *ns->key == ns_) continue;
    const uint32_t max_pages =
        WholePages(ns->lookahead(), tokens_.size(), tree.page_tokens());
    const TreePosition end =
        tree.Walk(EndOf(*ns->root), tokens_, max_pages, nullptr);
    const uint64_t tokens = uint64_t{end.pages()} * tree.page_tokens();
    if (tokens > result_.matched_tokens) {
      result_.longer_in_namespaces.push_back(ns->number);
    }
    compared += tokens + kStepTokens / kStepEntries;
  }
  return false;
}

}  // namespace pando
