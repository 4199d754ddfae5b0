// Copies of the tree that hold nobody up: a bounded part at a time.

#include <algorithm>

#include "core/prefix_cache.h"

namespace pando {
namespace {

constexpr uint32_t kBlocksOfAPart = 8;

}  // namespace

TreePart PrefixCache::CopyTree(uint32_t block) {
  TreePart part;
  part.nodes.reserve(kBlocksOfAPart * RadixTree::kBlockNodes);
  absl::MutexLock hold(&mutex_);
  const uint32_t end = std::min(tree_.node_blocks(), block + kBlocksOfAPart);
  for (; block < end; ++block) {
    tree_.ForEachNodeOfBlock(block, [&](const Node& node) {
      mutex_.AssertHeld();
      if (node.is_root()) {
        part.namespaces.push_back({node.ns->number, node.ns->key});
      } else {
        part.nodes.push_back(CopyOf(node));
      }
    });
  }
  if (block < tree_.node_blocks()) part.next_block = block;
  return part;
}

std::vector<NodeCopy> PrefixCache::CopyNodes(
    std::span<const NodeHandle> handles) {
  std::vector<NodeCopy> nodes;
  nodes.reserve(handles.size());
  absl::MutexLock hold(&mutex_);
  for (const NodeHandle handle : handles) {
    const Node* node = tree_.FindNode(handle);
    if (node != nullptr && !node->is_root()) nodes.push_back(CopyOf(*node));
  }
  return nodes;
}

std::vector<Token> PrefixCache::CopyTokens(NodeHandle handle, uint32_t limit) {
  std::vector<Token> tokens;
  tokens.reserve(limit);
  absl::MutexLock hold(&mutex_);
  const Node* node = tree_.FindNode(handle);
  if (node == nullptr || node->is_root()) return tokens;
  const Token* const begin = node->tokens(options_.page_tokens);
  const uint64_t size = uint64_t{node->page_count} * options_.page_tokens;
  tokens.assign(begin, begin + std::min<uint64_t>(size, limit));
  return tokens;
}

NodeCopy PrefixCache::CopyOf(const Node& node) const {
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
          .age = tree_.time() - node.inserted_at,
          .idle = tree_.time() - node.used_at};
}

}  // namespace pando
