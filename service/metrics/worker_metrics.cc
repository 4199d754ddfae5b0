// The metrics of what each worker holds, by the name that it gave itself.

#include "service/metrics/catalogue.h"

namespace pando {
namespace {

using Snapshot = MetricsSnapshot;

Metric OfEachWorker(std::string name, std::string help,
                    uint64_t WorkerFigures::*figure) {
  return Gauge(std::move(name), std::move(help),
               {{"worker",
                 "the names of the 32 sessions that were opened first, "
                 "`unnamed` where there is none, and `other`"}},
               [figure](const Snapshot& s, Samples& out) {
                 for (const WorkerFigures& worker : s.workers) {
                   out.Add({worker.name}, static_cast<double>(worker.*figure));
                 }
               });
}

}  // namespace

std::vector<Metric> WorkerMetrics() {
  return {
      OfEachWorker("pando_worker_sessions",
                   "Sessions that live now, by the name of their worker.",
                   &WorkerFigures::sessions),
      OfEachWorker("pando_worker_locks",
                   "Locks held now, by the name of their worker.",
                   &WorkerFigures::locks),
      OfEachWorker("pando_worker_reserved_pages",
                   "Pages reserved now, by the name of their worker.",
                   &WorkerFigures::reserved_pages),
  };
}

}  // namespace pando
