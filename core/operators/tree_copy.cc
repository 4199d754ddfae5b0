#include "core/operators/tree_copy.h"

#include <algorithm>

namespace pando {
namespace {

constexpr uint32_t kBlocksOfAPart = 8;

NodeCopy CopyOf(const RadixTree& tree, const Node& node) {
  return {.handle = Slab<Node>::HandleOf(node),
          .parent = node.parent->is_root() ? NodeHandle{0}
                                           : Slab<Node>::HandleOf(*node.parent),
          .number = node.id,
          .ns = node.ns->number,
          .begin_page = node.depth_pages,
          .pages = node.page_count,
          .locks = node.lock_count,
          .hits = node.hit_count,
          .priority = node.priority,
          .age = tree.time() - node.inserted_at,
          .idle = tree.time() - node.used_at};
}

}  // namespace

uint32_t MaxNodesPerPart() { return kBlocksOfAPart * RadixTree::kBlockNodes; }

void CopyTreePart(const RadixTree& tree, uint32_t block, TreePart& part) {
  const uint32_t end = std::min(tree.node_blocks(), block + kBlocksOfAPart);
  for (; block < end; ++block) {
    tree.ForEachNodeOfBlock(block, [&](const Node& node) {
      if (node.is_root()) {
        part.namespaces.push_back({node.ns->number, node.ns->key});
      } else {
        part.nodes.push_back(CopyOf(tree, node));
      }
    });
  }
  if (block < tree.node_blocks()) part.next_block = block;
}

void CopyNodes(const RadixTree& tree, std::span<const NodeHandle> handles,
               std::vector<NodeCopy>& nodes) {
  for (const NodeHandle handle : handles) {
    const Node* node = tree.FindNode(handle);
    if (node != nullptr && !node->is_root()) {
      nodes.push_back(CopyOf(tree, *node));
    }
  }
}

void CopyTokens(const RadixTree& tree, NodeHandle handle, uint32_t limit,
                std::vector<Token>& tokens) {
  const Node* node = tree.FindNode(handle);
  if (node == nullptr || node->is_root()) return;
  const Token* const begin = node->tokens(tree.page_tokens());
  const uint64_t size = uint64_t{node->page_count} * tree.page_tokens();
  tokens.assign(begin, begin + std::min<uint64_t>(size, limit));
}

}  // namespace pando
