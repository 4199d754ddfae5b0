#include "service/metrics/process_figures.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <system_error>

namespace pando {
namespace {

// Returns the seconds from 1970 to the boot of the machine.
double BootTime() {
  std::ifstream file("/proc/stat");
  for (std::string word; file >> word;) {
    double seconds = 0;
    if (word == "btime" && file >> seconds) return seconds;
  }
  return 0;
}

// Reads fields of /proc/self/stat, see proc(5), from number 3 on: the name
// before them may contain any characters.
void ReadStat(ProcessFigures& figures) {
  std::ifstream file("/proc/self/stat");
  std::string line;
  std::getline(file, line);
  std::istringstream fields(line.substr(line.rfind(')') + 1));
  constexpr int kFirst = 3, kUserTime = 14, kSystemTime = 15, kThreads = 20,
                kStartTime = 22, kVirtual = 23, kResident = 24;
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  std::string field;
  for (int number = kFirst; number <= kResident && fields >> field; ++number) {
    if (number == kUserTime || number == kSystemTime) {
      figures.cpu_seconds += std::stod(field) / ticks;
    } else if (number == kThreads) {
      figures.threads = std::stoull(field);
    } else if (number == kStartTime) {
      figures.start_time_seconds = BootTime() + std::stod(field) / ticks;
    } else if (number == kVirtual) {
      figures.virtual_bytes = std::stoull(field);
    } else if (number == kResident) {
      figures.resident_bytes =
          std::stoull(field) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    }
  }
}

}  // namespace

ProcessFigures ReadProcessFigures() {
  ProcessFigures figures;
  ReadStat(figures);
  std::error_code error;
  const std::filesystem::directory_iterator fds("/proc/self/fd", error);
  figures.open_fds = static_cast<uint64_t>(std::distance(begin(fds), end(fds)));
  if (rlimit limit; getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    figures.max_fds = limit.rlim_cur;
  }
  return figures;
}

}  // namespace pando
