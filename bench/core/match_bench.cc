// The match of a long cached prompt in the core alone, beside a memcmp of the
// same bytes.

#include <benchmark/benchmark.h>

#include <cstring>
#include <numeric>
#include <span>
#include <vector>

#include "core/prefix_cache.h"

namespace pando {
namespace {

constexpr uint32_t kPageTokens = 16;
constexpr uint32_t kTokens = 8192;
const NamespaceKey kDefault;

std::vector<Token> Prompt() {
  std::vector<Token> tokens(kTokens);
  std::iota(tokens.begin(), tokens.end(), 1);
  return tokens;
}

// Caches `prompt` as a path of `nodes` nodes, one insert each.
void CachePath(PrefixCache& cache, std::span<const Token> prompt, int nodes) {
  const SessionId session(1);
  cache.OpenSession(session, "bench");
  const size_t step = prompt.size() / nodes / kPageTokens * kPageTokens;
  std::vector<PageId> pages;
  for (int i = 0; i < nodes; ++i) {
    const size_t end = i + 1 == nodes ? prompt.size() : step * (i + 1);
    const auto more = cache.Allocate(
        {session, kDefault,
         static_cast<uint32_t>(end / kPageTokens - pages.size())});
    pages.insert(pages.end(), more->begin(), more->end());
    cache
        .Insert({.session = session,
                 .ns = kDefault,
                 .tokens = prompt.first(end),
                 .pages = pages})
        .status()
        .IgnoreError();
  }
}

void BM_Match8192(benchmark::State& state) {
  PrefixCache cache({.page_tokens = kPageTokens, .capacity_pages = 4096});
  const std::vector<Token> prompt = Prompt();
  CachePath(cache, prompt, static_cast<int>(state.range(0)));
  for (auto _ : state) {
    const auto match = cache.Match({.ns = kDefault, .tokens = prompt});
    if (match->matched_tokens != kTokens) state.SkipWithError("no full match");
    benchmark::DoNotOptimize(match->pages.data());
  }
}
BENCHMARK(BM_Match8192)->Arg(1)->Arg(5)->Arg(64);

void BM_Memcmp8192(benchmark::State& state) {
  const std::vector<Token> a = Prompt();
  const std::vector<Token> b = Prompt();
  for (auto _ : state) {
    int difference = std::memcmp(a.data(), b.data(), kTokens * sizeof(Token));
    benchmark::DoNotOptimize(difference);
    benchmark::ClobberMemory();
  }
}
BENCHMARK(BM_Memcmp8192);

}  // namespace
}  // namespace pando

BENCHMARK_MAIN();
