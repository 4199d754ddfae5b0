// Eviction of one page, of leaves with two pages each.
#include <benchmark/benchmark.h>

#include <memory>

#include "bench/core/workload.h"

namespace pando::bench {
namespace {

constexpr uint32_t kPageTokens = 16;
constexpr int64_t kEvictions = 50'000;

// A small tree is made anew when half its pages are gone.
void BM_EvictOnePage(benchmark::State& state) {
  const auto policy = static_cast<EvictionPolicyKind>(state.range(0));
  const auto leaves = static_cast<uint64_t>(state.range(1));
  std::unique_ptr<PrefixCache> cache;
  uint64_t left = 0;
  for (auto _ : state) {
    if (left == 0) {
      state.PauseTiming();
      cache = MakeCache(kPageTokens, 2 * leaves, policy);
      PublishLeaves(*cache, leaves, 2 * kPageTokens);
      left = leaves;
      state.ResumeTiming();
    }
    if (cache->Evict(1) != 1) state.SkipWithError("nothing to evict");
    --left;
  }
  state.SetLabel(std::string(EvictionPolicyName(policy)));
}
BENCHMARK(BM_EvictOnePage)
    ->ArgsProduct({{static_cast<int>(EvictionPolicyKind::kLru),
                    static_cast<int>(EvictionPolicyKind::kLfu),
                    static_cast<int>(EvictionPolicyKind::kSlru)},
                   {1'000, 100'000, 1'000'000}})
    ->Iterations(kEvictions);

}  // namespace
}  // namespace pando::bench
