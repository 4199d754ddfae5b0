#ifndef PANDO_CORE_JOURNAL_TREE_DESCRIPTION_H_
#define PANDO_CORE_JOURNAL_TREE_DESCRIPTION_H_

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "core/journal/event_log.h"
#include "core/tree/radix_tree.h"

namespace pando {

// Tells an event log what the tree contains, in bounded parts between which the
// tree may change. A node is told after its parent. Before a node is removed or
// trimmed, CacheJournal calls Tell for it, so the log never sees a removal of
// pages that it was not told of. Owned by CacheJournal while it is under way;
// not thread-safe.
//
// Invariant: each node that must still be told is in a cell that is still to be
// visited, or has a descendant in such a cell. So after the last cell, all
// nodes are told.
class TreeDescription {
 public:
  explicit TreeDescription(uint32_t capacity_pages)
      : is_told_(capacity_pages) {}

  // Tells about `nodes` more nodes. Returns whether these were the last.
  bool TellNext(const RadixTree& tree, uint32_t nodes, EventLog& log);
  // Tells `node` and the nodes above it, unless they have been told. Returns
  // how many it told. Call it for a node that is new or about to lose pages.
  uint32_t Tell(const Node& node, EventLog& log);
  // Notes that the pages have left the tree.
  void Forget(std::span<const PageId> pages);

 private:
  uint32_t next_ = 0;              // the cell to visit next
  std::vector<bool> is_told_;      // by page: whether it is cached and told
  std::vector<const Node*> path_;  // scratch
};

// Tells `log` that the pages of `node` are in the tree.
void LogNode(const Node& node, EventLog& log);

}  // namespace pando

#endif  // PANDO_CORE_JOURNAL_TREE_DESCRIPTION_H_
