#include "gpu/numa_nodes.h"

#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"

namespace pando {
namespace {

constexpr uint32_t kMostNodes = 1'024;  // the most that Linux can be built for
constexpr uint32_t kWordBits = 8 * sizeof(unsigned long);

}  // namespace

absl::StatusOr<std::vector<uint32_t>> NodesOf(const std::string& list) {
  std::vector<uint32_t> nodes;
  for (const absl::string_view part : absl::StrSplit(list, ',')) {
    const std::pair<std::string, std::string> range =
        absl::StrSplit(part, absl::MaxSplits('-', 1));
    uint32_t first = 0;
    uint32_t last = 0;
    const std::string& end =
        absl::StrContains(part, '-') ? range.second : range.first;
    if (!absl::SimpleAtoi(range.first, &first) ||
        !absl::SimpleAtoi(end, &last) || last < first || last >= kMostNodes) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", list, "' is no list of NUMA nodes such as 0-1,4"));
    }
    for (uint32_t node = first; node <= last; ++node) nodes.push_back(node);
  }
  return nodes;
}

absl::StatusOr<std::vector<uint32_t>> UsableNodes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    absl::string_view list = line;
    if (!absl::ConsumePrefix(&list, "Mems_allowed_list:")) continue;
    return NodesOf(std::string(absl::StripAsciiWhitespace(list)));
  }
  return absl::UnavailableError("Linux names no NUMA nodes");
}

absl::StatusOr<std::vector<uint32_t>> UsableNodesOf(const std::string& list) {
  ASSIGN_OR_RETURN(std::vector<uint32_t> nodes, NodesOf(list));
  ASSIGN_OR_RETURN(const std::vector<uint32_t> usable, UsableNodes());
  for (uint32_t node : nodes) {
    if (std::find(usable.begin(), usable.end(), node) != usable.end()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("NUMA node ", node, " cannot be used; usable are ",
                     absl::StrJoin(usable, ", ")));
  }
  return nodes;
}

absl::Status PlaceOnNodes(const UniqueFd& memory, uint64_t bytes,
                          const std::vector<uint32_t>& nodes) {
  std::array<unsigned long, kMostNodes / kWordBits> mask{};
  for (uint32_t node : nodes) mask[node / kWordBits] |= 1ul << node % kWordBits;
  // The memory remembers the policy of a mapping after the mapping has gone.
  void* const mapped =
      mmap(nullptr, bytes, PROT_NONE, MAP_SHARED, memory.get(), 0);
  if (mapped == MAP_FAILED) {
    return absl::ErrnoToStatus(errno, "mmap failed");
  }
  const absl::Cleanup unmap = [&] { munmap(mapped, bytes); };
  const int mode = nodes.size() == 1 ? MPOL_PREFERRED : MPOL_INTERLEAVE;
  // Linux expects one more than the number of bits.
  if (syscall(SYS_mbind, mapped, bytes, mode, mask.data(), kMostNodes + 1, 0) !=
      0) {
    return absl::ErrnoToStatus(errno, "mbind failed");
  }
  return absl::OkStatus();
}

}  // namespace pando
