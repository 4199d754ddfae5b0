#ifndef PANDO_BENCH_KV_EVENTS_CALLS_H_
#define PANDO_BENCH_KV_EVENTS_CALLS_H_

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

namespace pando::bench {

// Workers whose calls are timed.
struct WorkerLoad {
  std::string name;
  int clients;
  // See Load's constructor.
  std::chrono::microseconds period;
};

// Calls with events that `subscribers` read, beside those of as many workers
// without events: alone, and while a plain sender sends as many bytes to as
// many readers. The pools are full, so that as many blocks are removed as
// stored. The three take turns; there is a value for each turn.
nlohmann::json MeasureCalls(const std::string& pandod,
                            const std::string& folder, const WorkerLoad& load,
                            int subscribers);

}  // namespace pando::bench

#endif  // PANDO_BENCH_KV_EVENTS_CALLS_H_
