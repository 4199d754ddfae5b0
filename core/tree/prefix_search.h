#ifndef PANDO_CORE_TREE_PREFIX_SEARCH_H_
#define PANDO_CORE_TREE_PREFIX_SEARCH_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "core/requests/namespace_key.h"
#include "core/requests/requests.h"
#include "core/tree/radix_tree.h"

namespace pando {

// Functions over a const tree: how far a prompt is cached, and which handle
// names a place in the tree to callers.

// Where the longest cached prefix of a prompt ends. `position` is void once the
// tree changes; the numbers stay true when nodes are split.
struct FoundPrefix {
  Namespace* ns = nullptr;     // null: nothing is cached in it
  TreePosition position = {};  // if there is a namespace
  uint32_t pages = 0;
  uint32_t max_pages = 0;  // the prompt has no more whole pages
};

// Appends to `pages`, unless it is null, the pages that come after the query's
// handle. Fails as FindHandle does.
absl::StatusOr<FoundPrefix> FindPrefix(const RadixTree& tree,
                                       const PrefixQuery& query,
                                       std::vector<PageId>* pages);

// The number of tokens of the whole prompt, those before the query's handle
// included. In a bigram namespace that counts the token that the handle's last
// unit ends with, even when no token follows the handle.
size_t PromptTokens(const PrefixQuery& query);

// Where the prefix that `handle` names ends. HANDLE_GONE when the node that it
// names was evicted, even if the prefix ends above that node and is still
// cached, or when it is of another namespace; INVALID_FIELD when it names no
// whole pages.
absl::StatusOr<TreePosition> FindHandle(const RadixTree& tree,
                                        const NamespaceKey& ns,
                                        PrefixHandle handle);

// The handle that names the prefix up to `position`, whatever is split later.
PrefixHandle HandleTo(const RadixTree& tree, TreePosition position);

}  // namespace pando

#endif  // PANDO_CORE_TREE_PREFIX_SEARCH_H_
