#ifndef PANDO_OS_SHARED_HISTOGRAM_H_
#define PANDO_OS_SHARED_HISTOGRAM_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <iterator>

#include "base/histogram.h"

namespace pando {

// A Histogram that threads may record into while others read it, without a
// lock. Thread-safe. A copy that is made meanwhile may lack the last values.
template <const auto& kBounds>
class SharedHistogram {
 public:
  // Records `value` as if it had come `times` times.
  void Record(double value, uint64_t times = 1) {
    counts_[BucketOf<kBounds>(value)].fetch_add(times,
                                                std::memory_order_relaxed);
    sum_.fetch_add(value * static_cast<double>(times),
                   std::memory_order_relaxed);
  }

  Histogram<kBounds> Copy() const {
    typename Histogram<kBounds>::Counts counts;
    for (size_t i = 0; i < counts.size(); ++i) {
      counts[i] = counts_[i].load(std::memory_order_relaxed);
    }
    return Histogram<kBounds>(counts, sum_.load(std::memory_order_relaxed));
  }

 private:
  std::array<std::atomic<uint64_t>, std::size(kBounds) + 1> counts_{};
  std::atomic<double> sum_ = 0;
};

}  // namespace pando

#endif  // PANDO_OS_SHARED_HISTOGRAM_H_
