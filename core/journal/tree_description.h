#ifndef PANDO_CORE_JOURNAL_TREE_DESCRIPTION_H_
#define PANDO_CORE_JOURNAL_TREE_DESCRIPTION_H_

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "core/journal/event_log.h"
#include "core/tree/radix_tree.h"

namespace pando {

// Tells an event log what the tree holds, in bounded parts between which the
// tree may change. Whatever is told comes after its parent, and nothing that
// the log has not been told of is removed there: who changes the tree calls
// Tell first. Owned by CacheJournal while it is under way; not thread-safe.
//
// Invariant: each node that is still to be told is, or is above, a node that is
// still to be told in a cell still to be visited. So the last cell ends it.
class TreeDescription {
 public:
  explicit TreeDescription(uint32_t capacity_pages)
      : is_told_(capacity_pages) {}

  // Tells of the next nodes, about `nodes` of them. Returns whether these were
  // the last.
  bool TellNext(const RadixTree& tree, uint32_t nodes, EventLog& log);
  // Tells of `node` and of those above it, as far as it has not been done.
  // Returns of how many. Call it for a node that is new, or that is about to
  // lose pages.
  uint32_t Tell(const Node& node, EventLog& log);
  // The pages have left the tree.
  void Forget(std::span<const PageId> pages);

 private:
  uint32_t next_ = 0;          // the cell to visit next
  std::vector<bool> is_told_;  // by page: it is cached, and the log knows it
  std::vector<const Node*> path_;  // scratch
};

// Tells `log` that the pages of `node` are in the tree.
void LogNode(const Node& node, EventLog& log);

}  // namespace pando

#endif  // PANDO_CORE_JOURNAL_TREE_DESCRIPTION_H_
