// The cost of measuring: one value in a histogram, under the mutex and shared
// by threads, and an operation of the cache with and without a clock.
#include <benchmark/benchmark.h>

#include <memory>
#include <vector>

#include "absl/time/clock.h"
#include "bench/core/workload.h"
#include "core/journal/measurements.h"
#include "os/shared_histogram.h"

namespace pando::bench {
namespace {

// From 0.1 us to 0.2 s, in turn.
double NextValue() {
  static double value = 1e-7;
  value = value > 0.1 ? 1e-7 : value * 2;
  return value;
}

void BM_RecordNothing(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(NextValue());
}
BENCHMARK(BM_RecordNothing);

template <typename H>
void BM_Record(benchmark::State& state) {
  H histogram;
  for (auto _ : state) {
    histogram.Record(NextValue());
    benchmark::DoNotOptimize(histogram);
  }
}
BENCHMARK(BM_Record<Histogram<kOperationSeconds>>);
BENCHMARK(BM_Record<SharedHistogram<kOperationSeconds>>);

void BM_ReadClock(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(absl::GetCurrentTimeNanos());
}
BENCHMARK(BM_ReadClock);

// A match of one page, with nothing else on the cache. The argument says
// whether there is a clock.
void BM_MatchOnePage(benchmark::State& state) {
  constexpr uint32_t kPageTokens = 16;
  PrefixCache cache(
      {.page_tokens = kPageTokens,
       .capacity_pages = 64,
       .clock = state.range(0) != 0 ? absl::GetCurrentTimeNanos : nullptr});
  cache.OpenSession(kSession, "bench");
  const std::vector<Token> tokens = Tokens(1, kPageTokens);
  Publish(cache, tokens);
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        cache.Match({.ns = kNamespace, .tokens = tokens})->matched_tokens);
  }
}
BENCHMARK(BM_MatchOnePage)->Arg(0)->Arg(1);

}  // namespace
}  // namespace pando::bench
