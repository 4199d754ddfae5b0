#include "bench/kv_events/thread_times.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace pando::bench {

double ThreadSeconds(pid_t process, const std::vector<std::string>& names) {
  uint64_t nanoseconds = 0;
  for (const auto& thread : std::filesystem::directory_iterator(
           absl::StrCat("/proc/", process, "/task"))) {
    std::string name;
    std::getline(std::ifstream(thread.path() / "comm") >> std::ws, name);
    if (std::find(names.begin(), names.end(), name) == names.end()) continue;
    uint64_t on_processor = 0;
    std::ifstream(thread.path() / "schedstat") >> on_processor;
    nanoseconds += on_processor;
  }
  return nanoseconds / 1e9;
}

}  // namespace pando::bench
