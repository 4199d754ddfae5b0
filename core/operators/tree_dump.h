#ifndef PANDO_CORE_OPERATORS_TREE_DUMP_H_
#define PANDO_CORE_OPERATORS_TREE_DUMP_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "core/nodes/slab.h"
#include "core/operators/lock_totals.h"
#include "core/parts/stepped_work.h"
#include "core/requests/operator_results.h"

namespace pando {

// Lists the nodes of one namespace or of all, parents first, until there are
// `limit` of them. Nodes that change between the steps may be missing; the
// parent of a listed node is always listed before it.
//
// Its memory is that of the locked nodes, of the places that it still has to
// visit, and of the listed nodes that its owner has not taken yet.
class TreeDumpWork : public SteppedWork {
 public:
  TreeDumpWork(uint32_t limit, std::optional<NamespaceNumber> ns)
      : limit_(limit), ns_(ns), locks_(ns) {}

  bool Step(CacheParts& parts) override;
  // The nodes of the steps since the last call.
  std::vector<TreeNodeInfo> TakeNodes() { return std::exchange(nodes_, {}); }
  // How many nodes the limit cut off. REQUIRES: the last Step returned true.
  uint32_t omitted() const { return omitted_; }

 private:
  // A node to be listed, and its nearest listed ancestor (0: it is a root).
  struct Place {
    Slab<Node>::Handle node;
    Slab<Node>::Handle above;
    uint32_t depth;
  };

  bool BeginNextNamespace(const RadixTree& tree);
  void List(const RadixTree& tree, const Place& place);
  void PushChildren(const Node& node, uint32_t depth);
  void Finish(const RadixTree& tree);

  const uint32_t limit_;
  const std::optional<NamespaceNumber> ns_;
  LockTotals locks_;  // counted before the first node is listed
  bool has_locks_ = false;
  NamespaceNumber last_;       // the namespace that was begun last
  std::vector<Place> places_;  // a stack
  uint32_t listed_ = 0;
  std::vector<TreeNodeInfo> nodes_;
  uint32_t omitted_ = 0;
};

}  // namespace pando

#endif  // PANDO_CORE_OPERATORS_TREE_DUMP_H_
