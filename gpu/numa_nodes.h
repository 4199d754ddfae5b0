#ifndef PANDO_GPU_NUMA_NODES_H_
#define PANDO_GPU_NUMA_NODES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace pando {

// The NUMA nodes whose memory this process may use, in ascending order.
absl::StatusOr<std::vector<uint32_t>> UsableNodes();
// The same for a list as Linux writes it: "0-1,4". INVALID_ARGUMENT if it is
// not such a list.
absl::StatusOr<std::vector<uint32_t>> NodesOf(const std::string& list);

// The nodes of such a list, if this process may use the memory of each; else
// INVALID_ARGUMENT.
absl::StatusOr<std::vector<uint32_t>> UsableNodesOf(const std::string& list);

// Says on which NUMA nodes the pages of shared memory go when a process first
// touches them: on these in turn, or on others if these are full. Pages that
// were touched before stay where they are. An error, for example, where a
// container forbids it. REQUIRES: there is a node, and each is usable.
absl::Status PlaceOnNodes(const UniqueFd& memory, uint64_t bytes,
                          const std::vector<uint32_t>& nodes);

}  // namespace pando

#endif  // PANDO_GPU_NUMA_NODES_H_
