#include "os/memory_limit.h"

#include <sys/sysinfo.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"

namespace pando {
namespace {

constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();

std::string ContentsOf(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Returns the limit in a file, or kNoLimit for "max" or if there is no file.
uint64_t LimitIn(const std::string& path) {
  uint64_t limit = 0;
  return absl::SimpleAtoi(ContentsOf(path), &limit) ? limit : kNoLimit;
}

// Returns the least limit of a group and those above it. In a container the
// path may be the host's, while the mount shows the container's own group as
// the uppermost.
uint64_t LeastLimit(const std::string& mount, std::string group,
                    const std::string& file) {
  uint64_t least = kNoLimit;
  while (true) {
    least = std::min(least, LimitIn(absl::StrCat(mount, group, "/", file)));
    if (group.empty()) return least;
    group.resize(group.rfind('/'));
  }
}

}  // namespace

uint64_t MemoryLimitOfGroups(const std::string& membership,
                             const std::string& mount) {
  uint64_t least = kNoLimit;
  for (const absl::string_view line : absl::StrSplit(membership, '\n')) {
    // NUMBER:CONTROLLERS:/PATH
    const std::vector<std::string> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() < 3 || !parts[2].starts_with('/')) continue;
    const std::string group = parts[2] == "/" ? "" : parts[2];
    if (parts[1].empty()) {
      least = std::min(least, LeastLimit(mount, group, "memory.max"));
    } else if (parts[1] == "memory") {
      least = std::min(least, LeastLimit(absl::StrCat(mount, "/memory"), group,
                                         "memory.limit_in_bytes"));
    }
  }
  return least;
}

absl::StatusOr<uint64_t> FreeMemory() {
  ASSIGN_OR_RETURN(const uint64_t limit, MemoryLimit());
  // A line of /proc/meminfo: "MemAvailable:   12345 kB".
  const std::string figures = ContentsOf("/proc/meminfo");
  for (absl::string_view line : absl::StrSplit(figures, '\n')) {
    uint64_t kib = 0;
    if (absl::ConsumePrefix(&line, "MemAvailable:") &&
        absl::ConsumeSuffix(&line, " kB") && absl::SimpleAtoi(line, &kib)) {
      return std::min(limit, kib * 1024);
    }
  }
  return absl::UnavailableError("/proc/meminfo has no MemAvailable");
}

absl::StatusOr<uint64_t> MemoryLimit() {
  struct sysinfo info;
  if (sysinfo(&info) != 0) return absl::ErrnoToStatus(errno, "sysinfo");
  return std::min(
      uint64_t{info.totalram} * info.mem_unit,
      MemoryLimitOfGroups(ContentsOf("/proc/self/cgroup"), "/sys/fs/cgroup"));
}

}  // namespace pando
