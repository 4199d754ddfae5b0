// The metrics of the process, with the names that Prometheus clients use.

#include "service/metrics/catalogue.h"

namespace pando {
namespace {

using Snapshot = MetricsSnapshot;

}  // namespace

std::vector<Metric> ProcessMetrics() {
  return {
      Gauge("pando_build_info", "1, with what the program is as labels.",
            {{"version", "the version"},
             {"revision", "the commit it was built from, or `unknown`"},
             {"compiler", "the compiler and its version"}},
            [](const Snapshot&, Samples& out) {
              out.Add({PANDO_VERSION, PANDO_REVISION, PANDO_COMPILER}, 1);
            }),
      Gauge("pando_draining",
            "1 while nothing new is admitted, because the server is to stop; "
            "else 0.",
            [](const Snapshot& s) { return s.is_draining ? 1 : 0; }),
      Gauge("process_start_time_seconds",
            "Start of the process, in seconds since 1970.",
            [](const Snapshot& s) { return s.process.start_time_seconds; }),
      Counter("process_cpu_seconds_total",
              "User and system CPU time of the process.",
              [](const Snapshot& s) { return s.process.cpu_seconds; }),
      Gauge("process_resident_memory_bytes",
            "Resident memory of the process, the pages of a host pool that "
            "workers wrote not included.",
            [](const Snapshot& s) { return s.process.resident_bytes; }),
      Gauge("process_virtual_memory_bytes", "Virtual memory of the process.",
            [](const Snapshot& s) { return s.process.virtual_bytes; }),
      Gauge("process_open_fds", "Open file descriptors.",
            [](const Snapshot& s) { return s.process.open_fds; }),
      Gauge("process_max_fds", "File descriptors that may be open.",
            [](const Snapshot& s) { return s.process.max_fds; }),
      Gauge("process_threads", "Threads of the process.",
            [](const Snapshot& s) { return s.process.threads; }),
  };
}

}  // namespace pando
