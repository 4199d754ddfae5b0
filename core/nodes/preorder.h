#ifndef PANDO_CORE_NODES_PREORDER_H_
#define PANDO_CORE_NODES_PREORDER_H_

#include "core/nodes/node.h"

namespace pando {

// Walks through all nodes below `root`, each after its parent: returns the node
// after `node`, or null after the last one. To begin, pass the root as `node`.
inline Node* NextInPreorder(const Node& root, const Node& node) {
  if (node.first_child != nullptr) return node.first_child;
  for (const Node* n = &node; n != &root; n = n->parent) {
    if (n->next_sibling != nullptr) return n->next_sibling;
  }
  return nullptr;
}

}  // namespace pando

#endif  // PANDO_CORE_NODES_PREORDER_H_
