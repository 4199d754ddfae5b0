#ifndef PANDO_SERVICE_METRICS_PROCESS_FIGURES_H_
#define PANDO_SERVICE_METRICS_PROCESS_FIGURES_H_

#include <cstdint>

namespace pando {

// The kernel's figures of this process.
struct ProcessFigures {
  double start_time_seconds = 0;  // since 1970
  double cpu_seconds = 0;         // user and system
  uint64_t resident_bytes = 0;
  uint64_t virtual_bytes = 0;
  uint64_t open_fds = 0;
  uint64_t max_fds = 0;
  uint64_t threads = 0;
};

// Reads the figures. A figure that cannot be read is zero.
ProcessFigures ReadProcessFigures();

}  // namespace pando

#endif  // PANDO_SERVICE_METRICS_PROCESS_FIGURES_H_
