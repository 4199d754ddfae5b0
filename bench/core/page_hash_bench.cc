// The hash of one page, by the tokens of a page: each event names pages by it.

#include <benchmark/benchmark.h>

#include <numeric>
#include <vector>

#include "core/nodes/page_hash.h"

namespace pando {
namespace {

void BM_PageHash(benchmark::State& state) {
  std::vector<Token> page(static_cast<size_t>(state.range(0)));
  std::iota(page.begin(), page.end(), 1);
  PageHasher hasher;
  PageHash hash = hasher.Seed({});
  for (auto _ : state) {
    hash = hasher.Next(hash, page, false);
    benchmark::DoNotOptimize(hash);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_PageHash)->Arg(1)->Arg(16)->Arg(64);

}  // namespace
}  // namespace pando
