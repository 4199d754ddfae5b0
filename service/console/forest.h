#ifndef PANDO_SERVICE_CONSOLE_FOREST_H_
#define PANDO_SERVICE_CONSOLE_FOREST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "service/console/tree_copy.h"

namespace pando {

// The totals of one or several subtrees.
struct Totals {
  uint32_t nodes = 0;
  uint32_t pages = 0;
  uint32_t locked_pages = 0;
  uint32_t idle = UINT32_MAX;  // of the node used last, in tenths of a second

  // Adds the totals of another subtree: sums, and the smaller `idle`.
  void Add(const Totals& other);
};

// A copy of the tree with the totals of every subtree. Its branches are in this
// order: everything, the namespaces, the nodes (parents before children).
// Immutable, so any thread may read it.
class Forest {
 public:
  using Index = uint32_t;
  static constexpr Index kEverything = 0;

  struct Branch {
    Index parent = 0;                   // kEverything is its own parent
    const NamespaceCopy* ns = nullptr;  // null: everything
    const NodeCopy* node = nullptr;     // null: everything or a namespace
    Totals below = {};                  // its own totals and those below it
    // The least number of a node in the branch. The page orders siblings by it,
    // so that a node that is split keeps its place.
    uint64_t oldest = UINT64_MAX;
    std::vector<Index> children = {};  // the largest first
  };

  // Leaves out inconsistent nodes, which come from changes during the copy: a
  // node whose parent is missing, or whose parent does not end where the node
  // begins.
  explicit Forest(TreeCopy copy);
  Forest(const Forest&) = delete;
  Forest& operator=(const Forest&) = delete;

  const Branch& operator[](Index index) const { return branches_[index]; }
  Index size() const { return static_cast<Index>(branches_.size()); }
  const std::vector<NamespaceCopy>& namespaces() const {
    return copy_.namespaces;
  }

  // Returns the name of a branch: "all", "namespace-7" or "node-7", where 7 is
  // the number of the namespace or node. Find returns the branch of such a
  // name, or none if there is no such branch.
  std::string NameOf(Index index) const;
  std::optional<Index> Find(std::string_view name) const;
  std::optional<Index> FindNode(uint64_t number) const;
  std::optional<Index> FindNamespace(NamespaceNumber number) const;
  // Returns the branches from kEverything down to `index`, both included.
  std::vector<Index> PathTo(Index index) const;

 private:
  void AddNamespaces();
  void AddNodes();
  void SumUp();

  const TreeCopy copy_;
  std::vector<Branch> branches_;
  absl::flat_hash_map<NamespaceNumber, Index> namespaces_;
  absl::flat_hash_map<uint64_t, Index> nodes_;  // by number
};

}  // namespace pando

#endif  // PANDO_SERVICE_CONSOLE_FOREST_H_
