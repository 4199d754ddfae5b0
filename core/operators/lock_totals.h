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

// Counts the locks on each node and below it, which nodes do not know
// (Node::lock_count). It counts in steps the locks of one namespace, or of all:
// first those on each node, then from the deepest node upwards what each adds
// to its parent, so that a node is visited once however many locks there are.
// Locks that come or go meanwhile are counted or not. Not thread-safe.
class LockTotals {
 public:
  explicit LockTotals(std::optional<NamespaceNumber> ns) : ns_(ns) {}

  // Does a bounded part. Returns whether that was the last.
  bool Step(const CacheParts& parts);
  // REQUIRES: the last Step returned true.
  uint32_t Of(const Node& node) const;

 private:
  using Handle = Slab<Node>::Handle;

  void Add(const Node& node, uint32_t locks);
  // Looks at `left` cells at most, by which `left` is reduced. Returns whether
  // all locks are counted.
  bool AddLocks(const SessionTable& sessions, uint32_t& left);

  const std::optional<NamespaceNumber> ns_;
  uint32_t next_ = 0;  // the cell of the next lock
  bool has_all_locks_ = false;
  absl::flat_hash_map<Handle, uint32_t> totals_;
  // The nodes that their parents do not count yet, by where they end: a heap.
  std::vector<std::pair<uint32_t, Handle>> deepest_;
};

}  // namespace pando

#endif  // PANDO_CORE_OPERATORS_LOCK_TOTALS_H_
