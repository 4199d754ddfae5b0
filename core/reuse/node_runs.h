#ifndef PANDO_CORE_REUSE_NODE_RUNS_H_
#define PANDO_CORE_REUSE_NODE_RUNS_H_

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/nodes/node.h"
#include "core/nodes/slab.h"
#include "core/reuse/run.h"

namespace pando {

// The runs of cached nodes, by the cell of the node. They are not in the nodes,
// because each request ages hundreds of runs: here these are close together,
// while their nodes are in no CPU cache. Owned by ReuseLearner; not
// thread-safe.
class NodeRuns {
 public:
  // Whether the node has a known run.
  bool Has(const Node& node) const {
    const uint32_t cell = Slab<Node>::IndexOf(node);
    const uint32_t block = cell / kBlockRuns;
    return block < blocks_.size() && blocks_[block] != nullptr &&
           At(cell).uses > 0;
  }
  // REQUIRES: Make was called for the cell.
  Run& At(uint32_t cell) const {
    return (*blocks_[cell / kBlockRuns])[cell % kBlockRuns];
  }
  // Returns the run of a node, and makes room for it if it never had one.
  Run& Make(const Node& node) {
    const uint32_t cell = Slab<Node>::IndexOf(node);
    const uint32_t block = cell / kBlockRuns;
    if (block >= blocks_.size()) blocks_.resize(block + 1);
    if (blocks_[block] == nullptr) blocks_[block] = std::make_unique<Block>();
    return At(cell);
  }

 private:
  static constexpr uint32_t kBlockRuns = Slab<Node>::kBlockCells;
  using Block = std::array<Run, kBlockRuns>;

  std::vector<std::unique_ptr<Block>> blocks_;  // null: none in it was known
};

}  // namespace pando

#endif  // PANDO_CORE_REUSE_NODE_RUNS_H_
