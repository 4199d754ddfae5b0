#include "core/radix_tree.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/check.h"

namespace pando {

RadixTree::RadixTree(uint32_t page_tokens, uint32_t max_pages)
    : page_tokens_(page_tokens), index_(page_tokens) {
  index_.Reserve(max_pages);  // a node has at least one page
}

RadixTree::~RadixTree() = default;

Node* RadixTree::FindRoot(const NamespaceKey& key) const {
  const auto it = namespaces_.find(key);
  return it == namespaces_.end() ? nullptr : it->second->root;
}

Node& RadixTree::MakeRoot(const NamespaceKey& key) {
  auto [it, is_new] = namespaces_.try_emplace(key);
  if (is_new) {
    Node& root = nodes_.New();
    it->second = std::make_unique<Namespace>(Namespace{key, &root});
    root.root_of = it->second.get();
  }
  return *it->second->root;
}

void RadixTree::PruneRoot(Node& root) {
  if (!root.is_leaf() || root.is_locked()) return;
  const NamespaceKey key = root.root_of->key;
  namespaces_.erase(key);
  nodes_.Delete(Slab<Node>::HandleOf(root));
}

Node& RadixTree::RootOf(Node& node) {
  Node* root = &node;
  while (!root->is_root()) root = root->parent;
  return *root;
}

TreePosition RadixTree::Walk(Node& from, std::span<const Token> tokens,
                             uint32_t max_pages,
                             std::vector<PageId>& pages) const {
  TreePosition position{&from, from.page_count};
  const Token* next = tokens.data();
  uint32_t left = std::min<uint32_t>(max_pages, tokens.size() / page_tokens_);
  while (left > 0) {
    Node* child = index_.Find(*position.node, next);
    if (child == nullptr) break;
    const uint32_t common = CommonPages(child->tokens(page_tokens_), next,
                                        std::min(left, child->page_count));
    const PageId* first = child->pages().data();
    pages.insert(pages.end(), first, first + common);
    position = {child, common};
    if (position.is_inside_node()) break;
    next += size_t{common} * page_tokens_;
    left -= common;
  }
  return position;
}

// The first page is known to be equal. Compares everything at once, which is
// the usual case, and halves the range on a difference.
uint32_t RadixTree::CommonPages(const Token* a, const Token* b,
                                uint32_t pages) const {
  const auto equal = [&](uint32_t begin, uint32_t end) {
    const size_t offset = size_t{begin} * page_tokens_;
    const size_t bytes = size_t{end - begin} * page_tokens_ * sizeof(Token);
    return std::memcmp(a + offset, b + offset, bytes) == 0;
  };
  if (equal(1, pages)) return pages;
  uint32_t same = 1;
  uint32_t differs_before = pages;  // the first difference is in [same, this)
  while (differs_before - same > 1) {
    const uint32_t middle = same + (differs_before - same) / 2;
    if (equal(same, middle)) {
      same = middle;
    } else {
      differs_before = middle;
    }
  }
  return same;
}

Node& RadixTree::NodeEndingAt(TreePosition position) {
  return position.is_inside_node()
             ? Split(*position.node, position.pages_in_node)
             : *position.node;
}

// The old node stays the suffix, so that locks on it stay valid; its new parent
// takes the first `pages` pages and copies the lock count.
Node& RadixTree::Split(Node& node, uint32_t pages) {
  Node& parent = *node.parent;
  Node& front = nodes_.New();
  front.segment = node.segment;
  front.first_page = node.first_page;
  front.page_count = pages;
  front.lock_count = node.lock_count;
  front.last_access = node.last_access;

  RemoveChild(node);
  node.first_page += pages;
  node.page_count -= pages;
  AddChild(parent, front);
  AddChild(front, node);
  if (!node.is_locked()) order_.AddAfter(front, node);
  return front;
}

Node& RadixTree::AddLeaf(Node& parent, SegmentRef segment) {
  Node& leaf = nodes_.New();
  leaf.page_count = segment->page_count();
  leaf.segment = std::move(segment);
  AddChild(parent, leaf);
  order_.AddNewest(leaf);
  evictable_pages_ += leaf.page_count;
  Touch(leaf);
  return leaf;
}

void RadixTree::Touch(Node& node) {
  ++now_;
  for (Node* n = &node; !n->is_root(); n = n->parent) {
    n->last_access = now_;
    if (!n->is_locked()) order_.MoveToNewest(*n);
  }
}

void RadixTree::Lock(Node& node, const Node* ancestor) {
  for (Node* n = &node; n != ancestor; n = n->parent) {
    if (n->lock_count++ > 0 || n->is_root()) continue;
    order_.Remove(*n);
    evictable_pages_ -= n->page_count;
    protected_pages_ += n->page_count;
  }
}

void RadixTree::Unlock(Node& node) {
  ++now_;
  for (Node* n = &node; n != nullptr; n = n->parent) {
    CHECK(n->lock_count > 0);
    if (--n->lock_count > 0 || n->is_root()) continue;
    n->last_access = now_;
    order_.AddNewest(*n);
    protected_pages_ -= n->page_count;
    evictable_pages_ += n->page_count;
  }
}

uint32_t RadixTree::EvictablePagesUpTo(TreePosition position) {
  // Above a locked node everything is locked.
  uint32_t pages = 0;
  for (Node* n = position.node; !n->is_root() && !n->is_locked();
       n = n->parent) {
    pages += n == position.node ? position.pages_in_node : n->page_count;
  }
  return pages;
}

void RadixTree::Evict(uint32_t count, std::vector<PageId>& evicted) {
  while (count > 0) {
    Node* victim = order_.Oldest();
    if (victim == nullptr) return;
    CHECK(victim->is_leaf());
    const uint32_t pages = std::min(count, victim->page_count);
    TrimTail(*victim, pages, evicted);
    count -= pages;
  }
}

void RadixTree::TrimTail(Node& leaf, uint32_t pages,
                         std::vector<PageId>& trimmed) {
  const std::span<const PageId> tail = leaf.pages().last(pages);
  trimmed.insert(trimmed.end(), tail.begin(), tail.end());
  evictable_pages_ -= pages;
  leaf.segment.NoteEvicted(pages);
  if (pages == leaf.page_count) {
    RemoveLeaf(leaf);
  } else {
    leaf.page_count -= pages;
    RepackAround(leaf);
  }
}

void RadixTree::RemoveLeaf(Node& leaf) {
  Node& parent = *leaf.parent;
  const bool shares_segment =
      !parent.is_root() && &*parent.segment == &*leaf.segment;
  order_.Remove(leaf);
  RemoveChild(leaf);
  nodes_.Delete(Slab<Node>::HandleOf(leaf));
  if (parent.is_root()) {
    PruneRoot(parent);
  } else if (shares_segment) {
    RepackAround(parent);
  }
}

// Slices of a segment lie on one path of the tree. When the slices that are
// left use less than half of their segment, each gets a segment of its own, so
// that evicted tokens do not stay in memory. Copies no more than was evicted.
void RadixTree::RepackAround(Node& node) {
  const Segment* shared = &*node.segment;
  if (shared->used_pages() * 2 > shared->page_count()) return;
  for (Node* n = &node; !n->is_root() && &*n->segment == shared;
       n = n->parent) {
    const size_t tokens = size_t{n->page_count} * page_tokens_;
    n->segment =
        SegmentRef::Copy({n->tokens(page_tokens_), tokens}, n->pages());
    n->first_page = 0;
  }
}

void RadixTree::AddChild(Node& parent, Node& node) {
  node.parent = &parent;
  node.previous_sibling = nullptr;
  node.next_sibling = parent.first_child;
  if (parent.first_child != nullptr) {
    parent.first_child->previous_sibling = &node;
  }
  parent.first_child = &node;
  index_.Add(node);
}

void RadixTree::RemoveChild(Node& node) {
  index_.Remove(node);
  if (node.previous_sibling != nullptr) {
    node.previous_sibling->next_sibling = node.next_sibling;
  } else {
    node.parent->first_child = node.next_sibling;
  }
  if (node.next_sibling != nullptr) {
    node.next_sibling->previous_sibling = node.previous_sibling;
  }
}

void RadixTree::ForEachNode(const std::function<void(const Node&)>& visit) {
  nodes_.ForEach([&](const Node& node) {
    if (!node.is_root()) visit(node);
  });
}

}  // namespace pando
