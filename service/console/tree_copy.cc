#include "service/console/tree_copy.h"

#include <algorithm>
#include <span>
#include <vector>

#include "absl/container/flat_hash_set.h"

namespace pando {
namespace {

constexpr size_t kNodesAtOnce = 1'000;

template <typename T>
void Append(const std::vector<T>& from, std::vector<T>& to) {
  to.insert(to.end(), from.begin(), from.end());
}

// Adds parents that the copy lacks. A split during the copy puts a new node
// above others, where the copy may have passed already, and that node may be
// split again before it is looked for. The loop ends, because each parent
// begins on an earlier page.
void CopyMissingParents(PrefixCache& cache, std::vector<NodeCopy>& nodes) {
  absl::flat_hash_set<NodeHandle> known;
  known.reserve(nodes.size());
  for (const NodeCopy& node : nodes) known.insert(node.handle);
  std::vector<NodeHandle> missing;
  for (size_t seen = 0; seen < nodes.size();) {
    missing.clear();
    for (; seen < nodes.size(); ++seen) {
      const NodeHandle parent = nodes[seen].parent;
      if (parent != 0 && known.insert(parent).second) missing.push_back(parent);
    }
    for (size_t i = 0; i < missing.size(); i += kNodesAtOnce) {
      const auto some = std::span(missing).subspan(i);
      Append(cache.CopyNodes(some.first(std::min(some.size(), kNodesAtOnce))),
             nodes);
    }
  }
}

}  // namespace

TreeCopy CopyWholeTree(PrefixCache& cache) {
  TreeCopy copy;
  uint32_t block = 0;
  do {
    const TreePart part = cache.CopyTree(block);
    Append(part.nodes, copy.nodes);
    Append(part.namespaces, copy.namespaces);
    block = part.next_block;
  } while (block != 0);

  CopyMissingParents(cache, copy.nodes);
  return copy;
}

}  // namespace pando
