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

// One hash table for all edges of the tree: it leads from a parent, and the
// tokens of a first page, to the child that begins with them. Siblings differ
// within their first page, so a key is unique. Nothing stalls as it grows.
// Owned by RadixTree; not thread-safe.
class ChildIndex {
 public:
  // `nodes`, the cells of all nodes, outlive this.
  ChildIndex(uint32_t page_tokens, const Slab<Node>* nodes)
      : page_tokens_(page_tokens), nodes_(nodes) {}

  // The child of `parent` that begins with the page at `first_page`, or null.
  Node* Find(const Node& parent, const Token* first_page) const {
    return FindIf(parent, first_page, [](const Node&) { return true; });
  }

  // As Find, for a check of nodes that may be damaged: does not read the tokens
  // of a node that reaches past the end of its segment.
  Node* FindIntact(const Node& parent, const Token* first_page) const {
    return FindIf(parent, first_page,
                  [](const Node& node) { return node.is_within_segment(); });
  }

  // A node is found by its parent and first page, so remove it before either
  // changes and add it after.
  void Add(const Node& node) {
    cells_.Add(HashOf(node), Slab<Node>::IndexOf(node));
  }
  void Remove(const Node& node) {
    cells_.Remove(HashOf(node), Slab<Node>::IndexOf(node));
  }

  // Fetches what Remove() of `node` will look at.
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
