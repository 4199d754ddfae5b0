#ifndef PANDO_SERVICE_CONSOLE_TREE_COPY_H_
#define PANDO_SERVICE_CONSOLE_TREE_COPY_H_

#include <vector>

#include "core/prefix_cache.h"

namespace pando {

// A copy of the tree. It may be inconsistent; see CopyWholeTree.
struct TreeCopy {
  std::vector<NodeCopy> nodes;  // in no order
  std::vector<NamespaceCopy> namespaces;
};

// Copies the whole tree part by part, so that no call waits long for the cache.
// A node that changes meanwhile may be in the copy twice or not at all, and a
// node may be in the copy although its parent is gone.
TreeCopy CopyWholeTree(PrefixCache& cache);

}  // namespace pando

#endif  // PANDO_SERVICE_CONSOLE_TREE_COPY_H_
