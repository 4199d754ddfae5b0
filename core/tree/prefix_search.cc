#include "core/tree/prefix_search.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "core/requests/errors.h"

namespace pando {

size_t PromptTokens(const PrefixQuery& query) {
  const size_t sent = query.tokens.size();
  if (query.after.tokens == 0) return sent;
  return query.after.tokens + std::max<size_t>(sent, LookaheadOf(query.ns));
}

absl::StatusOr<FoundPrefix> FindPrefix(const RadixTree& tree,
                                       const PrefixQuery& query,
                                       std::vector<PageId>* pages) {
  size_t tokens = PromptTokens(query);
  if (query.max_tokens.has_value()) {
    tokens = std::min<size_t>(tokens, *query.max_tokens);
  }
  FoundPrefix found;
  found.max_pages =
      WholePages(LookaheadOf(query.ns), tokens, tree.page_tokens());
  if (query.after == PrefixHandle()) {
    found.ns = tree.FindNamespace(query.ns);
    if (found.ns == nullptr) return found;
    found.position = EndOf(*found.ns->root);
  } else {
    ASSIGN_OR_RETURN(found.position, FindHandle(tree, query.ns, query.after));
    found.ns = found.position.node->ns;
    if (found.max_pages < found.position.pages()) {
      found.position = *tree.FindPosition(query.after.node, found.max_pages);
    }
  }
  found.position = tree.Walk(found.position, query.tokens,
                             found.max_pages - found.position.pages(), pages);
  found.pages = found.position.pages();
  return found;
}

absl::StatusOr<TreePosition> FindHandle(const RadixTree& tree,
                                        const NamespaceKey& ns,
                                        PrefixHandle handle) {
  if (handle.tokens % tree.page_tokens() != 0) {
    return MakeError(
        Reason::kInvalidField, Subject::kHandle,
        absl::StrCat("a handle of ", handle.tokens,
                     " tokens; it must be a multiple of ", tree.page_tokens()));
  }
  const std::optional<TreePosition> position =
      tree.FindPosition(handle.node, handle.tokens / tree.page_tokens());
  // Both cases give the same answer, so that guessing handles does not reveal
  // what other namespaces contain.
  if (!position.has_value() || *position->node->ns->key != ns) {
    return MakeError(Reason::kHandleGone, Subject::kHandle,
                     "the handle names nothing in this namespace any more; "
                     "send the whole prompt");
  }
  return *position;
}

PrefixHandle HandleTo(const RadixTree& tree, TreePosition position) {
  return {Slab<Node>::HandleOf(*position.node),
          position.pages() * tree.page_tokens()};
}

}  // namespace pando
