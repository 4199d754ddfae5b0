#ifndef PANDO_SERVICE_METRICS_REGRET_METER_H_
#define PANDO_SERVICE_METRICS_REGRET_METER_H_

#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "core/prefix_cache.h"
#include "os/stop_signal.h"
#include "service/metrics/regret_index.h"

namespace pando {

// Feeds a RegretIndex with what enters and leaves the cache, on a thread of its
// own, so that calls neither hash pages nor wait for it. Owned by Server;
// thread-safe.
class RegretMeter {
 public:
  // `cache` outlives this.
  explicit RegretMeter(PrefixCache* cache);
  ~RegretMeter();

  // Returns the figures as of some milliseconds ago.
  RegretFigures Figures() const;

 private:
  void Run();

  PrefixCache* const cache_;
  mutable absl::Mutex mutex_;
  RegretFigures figures_ ABSL_GUARDED_BY(mutex_);
  StopSignal stop_;
  std::thread thread_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_METRICS_REGRET_METER_H_
