#ifndef PANDO_CORE_PREORDER_H_
#define PANDO_CORE_PREORDER_H_

#include "core/node.h"

namespace pando {

// The node after `node` when all below `root` are visited, each after its
// parent; null after the last. Start with the root itself.
inline Node* NextInPreorder(const Node& root, const Node& node) {
  if (node.first_child != nullptr) return node.first_child;
  for (const Node* n = &node; n != &root; n = n->parent) {
    if (n->next_sibling != nullptr) return n->next_sibling;
  }
  return nullptr;
}

}  // namespace pando

#endif  // PANDO_CORE_PREORDER_H_
