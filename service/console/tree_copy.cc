#include "service/console/tree_copy.h"

#include <span>

#include "absl/container/flat_hash_set.h"

namespace pando {
namespace {

// A split puts a new node above others, whose place in the copy may have gone
// by; such a node may have been split again.
constexpr int kRepairs = 4;
constexpr size_t kNodesAtOnce = 1'000;

template <typename T>
void Append(const std::vector<T>& from, std::vector<T>& to) {
  to.insert(to.end(), from.begin(), from.end());
}

// Looks for the parents that are missing; returns whether there were any.
bool CopyMissingParents(PrefixCache& cache,
                        absl::flat_hash_set<NodeHandle>& known,
                        std::vector<NodeCopy>& nodes) {
  std::vector<NodeHandle> missing;
  for (const NodeCopy& node : nodes) {
    if (node.parent != 0 && known.insert(node.parent).second) {
      missing.push_back(node.parent);
    }
  }
  for (size_t i = 0; i < missing.size(); i += kNodesAtOnce) {
    const auto some = std::span(missing).subspan(i);
    Append(cache.CopyNodes(some.first(std::min(some.size(), kNodesAtOnce))),
           nodes);
  }
  return !missing.empty();
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

  absl::flat_hash_set<NodeHandle> known;
  known.reserve(copy.nodes.size());
  for (const NodeCopy& node : copy.nodes) known.insert(node.handle);
  for (int i = 0; i < kRepairs; ++i) {
    if (!CopyMissingParents(cache, known, copy.nodes)) break;
  }
  return copy;
}

}  // namespace pando
