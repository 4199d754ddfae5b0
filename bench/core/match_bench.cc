// A match of 8,192 cached tokens in a tree of 100,000 leaves, beside a memcmp
// of the same bytes: hot, and with more memory in between than the CPU caches.
#include <benchmark/benchmark.h>

#include <cstring>
#include <memory>
#include <vector>

#include "bench/core/workload.h"

namespace pando::bench {
namespace {

constexpr size_t kTokens = 8192;
constexpr size_t kLeafTokens = 256;
constexpr uint64_t kLeaves = 100'000;
// Prompts to go through in turn, so that each is out of the caches when its
// turn comes: 256 MiB of tokens.
constexpr uint64_t kColdPrompts = 8192;

uint64_t SeedOf(uint64_t prompt) { return 10'000'000 + prompt; }

// One tree for each page size, with a prompt for each number of nodes and, at
// the end, the prompts for the cold match.
PrefixCache& Tree(uint32_t page_tokens, uint64_t prompts, int nodes) {
  static std::unique_ptr<PrefixCache> cache;
  static std::vector<uint64_t> made;
  const std::vector<uint64_t> wanted = {page_tokens, prompts,
                                        static_cast<uint64_t>(nodes)};
  if (made == wanted) return *cache;
  cache.reset();
  cache = MakeCache(page_tokens,
                    (kLeaves * kLeafTokens + prompts * kTokens) / page_tokens);
  PublishLeaves(*cache, kLeaves, kLeafTokens);
  for (uint64_t i = 0; i < prompts; ++i) {
    PublishPath(*cache, Tokens(SeedOf(i), kTokens), nodes);
  }
  made = wanted;
  return *cache;
}

void Match(benchmark::State& state, uint64_t prompts) {
  PrefixCache& cache = Tree(static_cast<uint32_t>(state.range(0)), prompts,
                            static_cast<int>(state.range(1)));
  // The requests stay in the CPU caches, so that the index is measured.
  std::vector<Token> prompt = Tokens(SeedOf(0), kTokens);
  uint64_t next = 0;
  for (auto _ : state) {
    if (prompts > 1) {
      state.PauseTiming();
      prompt = Tokens(SeedOf(next++ % prompts), kTokens);
      state.ResumeTiming();
    }
    const auto match = cache.Match(
        {.ns = kNamespace, .tokens = prompt, .max_tokens = kTokens});
    if (match->matched_tokens != kTokens) state.SkipWithError("no full match");
    benchmark::DoNotOptimize(match->pages.data());
  }
}

void BM_MatchHot(benchmark::State& state) { Match(state, 1); }
void BM_MatchCold(benchmark::State& state) { Match(state, kColdPrompts); }
BENCHMARK(BM_MatchHot)->ArgsProduct({{1, 16}, {1, 16, 64}});
BENCHMARK(BM_MatchCold)->ArgsProduct({{1, 16}, {1}})->Iterations(16'384);

void BM_MemcmpHot(benchmark::State& state) {
  const std::vector<Token> a = Tokens(1, kTokens);
  const std::vector<Token> b = Tokens(1, kTokens);
  for (auto _ : state) {
    int difference = std::memcmp(a.data(), b.data(), kTokens * sizeof(Token));
    benchmark::DoNotOptimize(difference);
    benchmark::ClobberMemory();
  }
}
BENCHMARK(BM_MemcmpHot);

// The argument says whether page ids, as many and as cold, are copied as well:
// a match at page 1 has one for each token.
void BM_MemcmpCold(benchmark::State& state) {
  const bool copies = state.range(0) != 0;
  std::vector<PageId> pages(kTokens);
  std::vector<std::vector<PageId>> cached_pages;
  for (uint64_t i = 0; copies && i < kColdPrompts; ++i) {
    cached_pages.emplace_back(kTokens, PageId(static_cast<uint32_t>(i)));
  }
  std::vector<std::vector<Token>> cached;
  for (uint64_t i = 0; i < kColdPrompts; ++i) {
    cached.push_back(Tokens(i, kTokens));
  }
  uint64_t next = 0;
  for (auto _ : state) {
    state.PauseTiming();
    const std::vector<Token> prompt = Tokens(next % kColdPrompts, kTokens);
    const size_t turn = next++ % kColdPrompts;
    const Token* const other = cached[turn].data();
    state.ResumeTiming();
    int difference = std::memcmp(prompt.data(), other, kTokens * sizeof(Token));
    benchmark::DoNotOptimize(difference);
    if (!copies) continue;
    std::memcpy(pages.data(), cached_pages[turn].data(),
                kTokens * sizeof(PageId));
    benchmark::DoNotOptimize(pages.data());
    benchmark::ClobberMemory();
  }
}
BENCHMARK(BM_MemcmpCold)->Arg(0)->Arg(1)->Iterations(16'384);

}  // namespace
}  // namespace pando::bench
