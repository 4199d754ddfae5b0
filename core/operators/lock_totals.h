#ifndef PANDO_CORE_OPERATORS_LOCK_TOTALS_H_
#define PANDO_CORE_OPERATORS_LOCK_TOTALS_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/ids.h"
#include "core/nodes/slab.h"
#include "core/parts/cache_parts.h"

namespace pando {

// Counts, for each node, the locks on it and on its descendants; a node itself
// does not know that number (Node::lock_count is another one). It works in
// steps, for one namespace or for all. First it counts the locks on each node;
// then, from the deepest node upwards, it adds each node's total to its parent.
// So it visits a node once, however many locks there are. Locks that come or go
// meanwhile may be counted or not. Not thread-safe.
class LockTotals {
 public:
  explicit LockTotals(std::optional<NamespaceNumber> ns) : ns_(ns) {}

  // Does a bounded part. Returns whether that was the last.
  bool Step(const CacheParts& parts);
  // How many locks there are on the node and below it. REQUIRES: the last Step
  // returned true.
  uint32_t Of(const Node& node) const;

 private:
  using Handle = Slab<Node>::Handle;

  void Add(const Node& node, uint32_t locks);
  // Looks at no more than `left` cells of locks, and reduces `left` by their
  // number. Returns whether all locks are counted.
  bool AddLocks(const SessionTable& sessions, uint32_t& left);

  const std::optional<NamespaceNumber> ns_;
  uint32_t next_ = 0;  // the cell of the next lock
  bool has_all_locks_ = false;
  absl::flat_hash_map<Handle, uint32_t> totals_;
  // A heap, by end_pages, of the nodes whose totals are not added to their
  // parents yet.
  std::vector<std::pair<uint32_t, Handle>> deepest_;
};

}  // namespace pando

#endif  // PANDO_CORE_OPERATORS_LOCK_TOTALS_H_
