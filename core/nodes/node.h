#ifndef PANDO_CORE_NODES_NODE_H_
#define PANDO_CORE_NODES_NODE_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/ids.h"
#include "core/nodes/segment.h"

namespace pando {

struct Namespace;

// A node of the tree: a run of whole pages, which is a slice of a segment. The
// root of a namespace is a node without pages. Plain data, owned by RadixTree's
// slab and changed only by RadixTree and its EvictionPolicy.
struct Node {
  Node* parent = nullptr;  // null for a root
  Node* first_child = nullptr;
  Node* next_sibling = nullptr;
  Node* previous_sibling = nullptr;

  // Links of LruPolicy or ReusePolicy; null while the node is not in its list.
  Node* older = nullptr;
  Node* newer = nullptr;

  Namespace* ns = nullptr;
  SegmentRef segment;  // none for a root
  uint32_t first_page = 0;
  uint32_t page_count = 0;
  // Pages before the node, from the root on. With page_count this is where the
  // node ends, which no split moves.
  uint32_t depth_pages = 0;

  // The number of locks taken on this node, plus that of its locked children.
  uint32_t lock_count = 0;

  uint64_t id = 0;  // counts up as nodes are made
  // Logical time of the last access to the whole node.
  uint64_t last_access = 0;
  // How many inserts contained the whole node. Chunks of a prefill do not
  // count.
  uint32_t hit_count = 0;
  // The highest priority of those inserts.
  int32_t priority = 0;
  // When its pages were inserted, and when they were last used or unlocked, as
  // RadixTree::time.
  uint32_t inserted_at = 0;
  uint32_t used_at = 0;

  // Eviction spares it from this RadixTree::time on for so long; see
  // RadixTree::Retain.
  uint32_t retained_from = 0;
  uint16_t retained_seconds = 0;
  // The last insert that used it said that it will not be used again; see
  // RadixTree::EndPrefix.
  bool has_ended = false;
  // It came from a tier, and no match has used it since; see
  // RadixTree::TakeLoaded.
  bool is_loaded = false;

  bool is_root() const { return parent == nullptr; }
  bool is_leaf() const { return first_child == nullptr; }
  bool is_locked() const { return lock_count > 0; }
  // Whether it is retained at `time`, a RadixTree::time in tenths of a second.
  bool IsRetained(uint32_t time) const {
    return time - retained_from < uint32_t{retained_seconds} * 10;
  }
  bool is_ended_leaf() const { return has_ended && is_leaf() && !is_locked(); }
  uint32_t end_pages() const { return depth_pages + page_count; }
  // False only when the node is damaged.
  bool is_within_segment() const {
    return uint64_t{first_page} + page_count <= segment->page_count();
  }

  const Token* tokens(uint32_t page_tokens) const {
    return segment->tokens() + size_t{first_page} * page_tokens;
  }
  std::span<const PageId> pages() const {
    return {segment->pages() + first_page, page_count};
  }
  // Empty if its segment has no prints.
  std::span<const PagePrint> prints() const {
    const PagePrint* const all = segment->prints();
    if (all == nullptr) return {};
    return {all + first_page, page_count};
  }
};

}  // namespace pando

#endif  // PANDO_CORE_NODES_NODE_H_
