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
  Namespace* ns = nullptr;     // null: the namespace does not exist
  TreePosition position = {};  // valid only if `ns` is not null
  uint32_t pages = 0;
  uint32_t max_pages = 0;  // whole pages of the prompt, within its max_tokens
};

// Finds the longest cached prefix of a prompt. Appends its pages after the
// query's handle to `pages`, unless that is null. Fails as FindHandle does.
absl::StatusOr<FoundPrefix> FindPrefix(const RadixTree& tree,
                                       const PrefixQuery& query,
                                       std::vector<PageId>* pages);

// The number of tokens of the whole prompt, those before the query's handle
// included. In a bigram namespace that counts the token that the handle's last
// unit ends with, even when no token follows the handle.
size_t PromptTokens(const PrefixQuery& query);

// Returns where the prefix that `handle` names ends. HANDLE_GONE if the
// handle's node was evicted, even if the prefix ends above that node and is
// still cached, or if the handle is of another namespace. INVALID_FIELD if its
// tokens are no whole pages.
absl::StatusOr<TreePosition> FindHandle(const RadixTree& tree,
                                        const NamespaceKey& ns,
                                        PrefixHandle handle);

// Returns a handle of the prefix that ends at `position`. Later splits do not
// invalidate it.
PrefixHandle HandleTo(const RadixTree& tree, TreePosition position);

}  // namespace pando

#endif  // PANDO_CORE_TREE_PREFIX_SEARCH_H_
