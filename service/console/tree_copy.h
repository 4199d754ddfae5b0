#ifndef PANDO_SERVICE_CONSOLE_TREE_COPY_H_
#define PANDO_SERVICE_CONSOLE_TREE_COPY_H_

#include <vector>

#include "core/prefix_cache.h"

namespace pando {

struct TreeCopy {
  std::vector<NodeCopy> nodes;  // in no order
  std::vector<NamespaceCopy> namespaces;
};

// Copies the whole tree part by part, so that nobody waits long for the cache.
// What changes meanwhile may be in the copy twice or not at all, and nodes
// whose parent went may be left.
TreeCopy CopyWholeTree(PrefixCache& cache);

}  // namespace pando

#endif  // PANDO_SERVICE_CONSOLE_TREE_COPY_H_
