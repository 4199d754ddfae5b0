#ifndef PANDO_BASE_HISTOGRAM_H_
#define PANDO_BASE_HISTOGRAM_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>

namespace pando {

// A view of a histogram, for code that does not know its bounds.
struct HistogramView {
  std::span<const double> bounds;
  std::span<const uint64_t> counts;  // one more than `bounds`
  double sum;
};

// The index of the bucket of `value`: the first bucket whose upper bound is at
// least `value`, or the last one, which has no bound.
template <const auto& kBounds>
size_t BucketOf(double value) {
  return static_cast<size_t>(
      std::lower_bound(std::begin(kBounds), std::end(kBounds), value) -
      std::begin(kBounds));
}

// A histogram: how many values fell into each bucket, and their sum. `kBounds`
// are the upper bounds of the buckets, in ascending order. Plain data of fixed
// size; recording takes some nanoseconds. Not thread-safe.
template <const auto& kBounds>
class Histogram {
 public:
  using Counts = std::array<uint64_t, std::size(kBounds) + 1>;

  Histogram() = default;
  Histogram(const Counts& counts, double sum) : counts_(counts), sum_(sum) {}

  void Record(double value, uint64_t times = 1) {
    counts_[BucketOf<kBounds>(value)] += times;
    sum_ += value * static_cast<double>(times);
  }

  HistogramView View() const { return {kBounds, counts_, sum_}; }

 private:
  Counts counts_{};
  double sum_ = 0;
};

}  // namespace pando

#endif  // PANDO_BASE_HISTOGRAM_H_
