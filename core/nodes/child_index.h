#ifndef PANDO_CORE_NODES_CHILD_INDEX_H_
#define PANDO_CORE_NODES_CHILD_INDEX_H_

#include <cstring>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"
#include "core/nodes/node.h"
#include "core/requests/namespace.h"

namespace pando {

// One hash table for all edges of the tree: it leads from a parent, and the
// tokens of a first page, to the child that begins with them. Siblings differ
// within their first page, so a key is unique. Owned by RadixTree; not
// thread-safe.
class ChildIndex {
 public:
  explicit ChildIndex(uint32_t page_tokens)
      : nodes_(0, Hash{page_tokens}, Equal{page_tokens}) {}

  // Makes room, so that the table does not grow while requests wait.
  void Reserve(size_t nodes) { nodes_.reserve(nodes); }

  // The child of `parent` that begins with the page at `first_page`, or null.
  Node* Find(const Node& parent, const Token* first_page) const {
    const auto it = nodes_.find(Edge{&parent, first_page});
    return it == nodes_.end() ? nullptr : *it;
  }

  // As Find, for a check of nodes that may be damaged: does not read the tokens
  // of a node that reaches past the end of its segment.
  Node* FindIntact(const Node& parent, const Token* first_page) const {
    const auto it = nodes_.find(EdgeOfIntact{{&parent, first_page}});
    return it == nodes_.end() ? nullptr : *it;
  }

  // A node is found by its parent and first page, so remove it before either
  // changes and add it after.
  void Add(Node& node) { nodes_.insert(&node); }
  void Remove(Node& node) { nodes_.erase(&node); }

  // Fetches what Remove() of `node` will look at.
  void Prefetch(const Node& node) const { nodes_.prefetch(&node); }

  size_t size() const { return nodes_.size(); }

 private:
  struct Edge {
    const Node* parent;
    const Token* first_page;
  };
  struct EdgeOfIntact : Edge {};

  struct PageSize {
    uint32_t page_tokens;

    Edge EdgeOf(const Edge& edge) const { return edge; }
    Edge EdgeOf(const Node* node) const {
      return {node->parent, node->tokens(page_tokens)};
    }
    size_t PageBytes(const Edge& edge) const {
      return (page_tokens + edge.parent->ns->lookahead()) * sizeof(Token);
    }
  };

  struct Hash : PageSize {
    using is_transparent = void;
    template <typename Key>
    size_t operator()(const Key& key) const {
      const Edge edge = EdgeOf(key);
      return absl::HashOf(
          edge.parent,
          absl::string_view(reinterpret_cast<const char*>(edge.first_page),
                            PageBytes(edge)));
    }
  };

  struct Equal : PageSize {
    using is_transparent = void;
    template <typename A, typename B>
    bool operator()(const A& a, const B& b) const {
      const Edge left = EdgeOf(a);
      const Edge right = EdgeOf(b);
      return left.parent == right.parent &&
             std::memcmp(left.first_page, right.first_page, PageBytes(left)) ==
                 0;
    }
    bool operator()(Node* const& node, const EdgeOfIntact& edge) const {
      return node->is_within_segment() &&
             (*this)(node, static_cast<const Edge&>(edge));
    }
  };

  absl::flat_hash_set<Node*, Hash, Equal> nodes_;
};

}  // namespace pando

#endif  // PANDO_CORE_NODES_CHILD_INDEX_H_
