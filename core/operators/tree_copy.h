#ifndef PANDO_CORE_OPERATORS_TREE_COPY_H_
#define PANDO_CORE_OPERATORS_TREE_COPY_H_

// Copies the tree for a reader that looks at it all the time: the console. Each
// function copies one bounded part under the mutex, so that other calls do not
// wait long. The caller gives the vectors enough capacity, so that nothing is
// allocated under the mutex.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/ids.h"
#include "core/requests/namespace_key.h"
#include "core/tree/radix_tree.h"

namespace pando {

// Names a node for as long as it lives; 0 names none.
using NodeHandle = uint64_t;

struct NodeCopy {
  NodeHandle handle = 0;
  NodeHandle parent = 0;  // 0: the root of the namespace
  uint64_t number = 0;    // TreeNodeInfo::node
  NamespaceNumber ns;
  // The first page, counted from the start of the prompt. A parent ends where
  // its children begin.
  uint32_t begin_page = 0;
  uint32_t pages = 0;
  uint32_t locks = 0;  // Node::lock_count
  uint32_t hits = 0;
  int32_t priority = 0;
  // The time since it was inserted, and since its last use, in tenths of a
  // second.
  uint32_t age = 0;
  uint32_t idle = 0;

  uint32_t end_page() const { return begin_page + pages; }
};

struct NamespaceCopy {
  NamespaceNumber number;
  std::shared_ptr<const NamespaceKey> key;
};

struct TreePart {
  std::vector<NodeCopy> nodes;
  std::vector<NamespaceCopy> namespaces;
  // The block to continue with; 0: this was the last part.
  uint32_t next_block = 0;
};

// The most nodes that one part can have.
uint32_t MaxNodesPerPart();

// The part of the tree that begins with `block`.
void CopyTreePart(const RadixTree& tree, uint32_t block, TreePart& part);
// Copies those of the nodes that still exist.
void CopyNodes(const RadixTree& tree, std::span<const NodeHandle> handles,
               std::vector<NodeCopy>& nodes);
// Copies the first tokens of a node, at most `limit`; none if the node is gone.
void CopyTokens(const RadixTree& tree, NodeHandle handle, uint32_t limit,
                std::vector<Token>& tokens);

}  // namespace pando

#endif  // PANDO_CORE_OPERATORS_TREE_COPY_H_
