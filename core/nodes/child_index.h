#ifndef PANDO_CORE_NODES_CHILD_INDEX_H_
#define PANDO_CORE_NODES_CHILD_INDEX_H_

#include <cstring>

#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"
#include "core/nodes/node.h"
#include "core/nodes/slab.h"
#include "core/nodes/steady_index.h"
#include "core/requests/namespace.h"

namespace pando {

// One hash table of all edges of the tree: it finds a child by its parent and
// the tokens of the child's first page. Siblings differ within their first
// page, so a key is unique. It grows without stalls (SteadyIndex). Owned by
// RadixTree; not thread-safe.
class ChildIndex {
 public:
  // `nodes` is the slab of all nodes; it outlives this.
  ChildIndex(uint32_t page_tokens, const Slab<Node>* nodes)
      : page_tokens_(page_tokens), nodes_(nodes) {}

  // The child of `parent` that begins with the page at `first_page`, or null.
  Node* Find(const Node& parent, const Token* first_page) const {
    return FindIf(parent, first_page, [](const Node&) { return true; });
  }

  // The same as Find, for a check of nodes that may be damaged: it does not
  // read the tokens of a node that reaches past the end of its segment.
  Node* FindIntact(const Node& parent, const Token* first_page) const {
    return FindIf(parent, first_page,
                  [](const Node& node) { return node.is_within_segment(); });
  }

  // The key of a node is its parent and first page. So remove the node before
  // either changes, and add it afterwards.
  void Add(const Node& node) {
    cells_.Add(HashOf(node), Slab<Node>::IndexOf(node));
  }
  void Remove(const Node& node) {
    cells_.Remove(HashOf(node), Slab<Node>::IndexOf(node));
  }

  // Prefetches what Remove(node) will read.
  void Prefetch(const Node& node) const { cells_.Prefetch(HashOf(node)); }

  size_t size() const { return cells_.size(); }

 private:
  size_t PageBytes(const Node& parent) const {
    return (page_tokens_ + parent.ns->lookahead()) * sizeof(Token);
  }
  uint64_t HashOf(const Node& parent, const Token* first_page) const {
    return absl::HashOf(
        &parent, absl::string_view(reinterpret_cast<const char*>(first_page),
                                   PageBytes(parent)));
  }
  uint64_t HashOf(const Node& node) const {
    return HashOf(*node.parent, node.tokens(page_tokens_));
  }

  template <typename F>
  Node* FindIf(const Node& parent, const Token* first_page,
               F&& may_be_read) const {
    Node* found = nullptr;
    cells_.Find(HashOf(parent, first_page), [&](uint32_t cell) {
      Node* const node = nodes_->FindAt(cell);
      if (node == nullptr || node->parent != &parent || !may_be_read(*node) ||
          std::memcmp(node->tokens(page_tokens_), first_page,
                      PageBytes(parent)) != 0) {
        return false;
      }
      found = node;
      return true;
    });
    return found;
  }

  const uint32_t page_tokens_;
  const Slab<Node>* const nodes_;
  SteadyIndex cells_;
};

}  // namespace pando

#endif  // PANDO_CORE_NODES_CHILD_INDEX_H_
