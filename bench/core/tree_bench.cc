// The whole index: memory for each cached token, and the self-check.
#include <benchmark/benchmark.h>
#include <jemalloc/jemalloc.h>

#include <memory>

#include "base/check.h"
#include "bench/core/workload.h"

namespace pando::bench {
namespace {

constexpr size_t kLeafTokens = 256;

size_t AllocatedBytes() {
  uint64_t now = 1;
  size_t bytes = 0;
  size_t size = sizeof(bytes);
  // The figures are those of the last epoch that was asked for.
  CHECK(mallctl("epoch", nullptr, nullptr, &now, sizeof(now)) == 0);
  CHECK(mallctl("stats.allocated", &bytes, &size, nullptr, 0) == 0);
  return bytes;
}

// Without the page pool's own record of each page, which is there before
// anything is cached: "pool_bytes_per_page".
void BM_IndexMemory(benchmark::State& state) {
  const auto page_tokens = static_cast<uint32_t>(state.range(0));
  constexpr uint64_t kLeaves = 100'000;
  for (auto _ : state) {
    const size_t before = AllocatedBytes();
    const auto cache =
        MakeCache(page_tokens, kLeaves * kLeafTokens / page_tokens);
    const size_t empty = AllocatedBytes();
    PublishLeaves(*cache, kLeaves, kLeafTokens);
    const size_t full = AllocatedBytes();
    const double tokens = kLeaves * kLeafTokens;
    state.counters["bytes_per_token"] =
        static_cast<double>(full - empty) / tokens;
    state.counters["floor"] =
        sizeof(Token) + static_cast<double>(sizeof(PageId)) / page_tokens;
    state.counters["empty_bytes_per_page"] =
        static_cast<double>(empty - before) / tokens * page_tokens;
  }
}
BENCHMARK(BM_IndexMemory)->Arg(1)->Arg(16)->Iterations(1);

void BM_CheckInvariants(benchmark::State& state) {
  const auto leaves = static_cast<uint64_t>(state.range(0));
  const auto cache = MakeCache(16, leaves * kLeafTokens / 16);
  PublishLeaves(*cache, leaves, kLeafTokens);
  for (auto _ : state) {
    if (!cache->CheckInvariants().empty()) state.SkipWithError("violated");
  }
  state.counters["ns_per_leaf"] =
      benchmark::Counter(static_cast<double>(leaves),
                         benchmark::Counter::kIsIterationInvariantRate |
                             benchmark::Counter::kInvert);
}
BENCHMARK(BM_CheckInvariants)
    ->Arg(1'000)
    ->Arg(10'000)
    ->Arg(100'000)
    ->Unit(benchmark::kMillisecond);

// One part of a copy of the tree, with the mutex held for all but its memory.
void BM_CopyTreePart(benchmark::State& state) {
  constexpr uint64_t kLeaves = 100'000;
  const auto cache = MakeCache(16, kLeaves * kLeafTokens / 16);
  PublishLeaves(*cache, kLeaves, kLeafTokens);
  uint32_t block = 0;
  for (auto _ : state) block = cache->CopyTree(block).next_block;
}
BENCHMARK(BM_CopyTreePart)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace pando::bench
