// Several threads on one cache: admissions and finishes of requests whose
// prompts share prefixes.
#include <benchmark/benchmark.h>

#include <memory>
#include <random>
#include <span>
#include <vector>

#include "bench/core/workload.h"

namespace pando::bench {
namespace {

constexpr uint32_t kPageTokens = 16;
constexpr size_t kTokens = 2048;
constexpr int kPrompts = 512;

void BM_Requests(benchmark::State& state) {
  static std::unique_ptr<PrefixCache> cache;
  static std::vector<std::vector<Token>> prompts;
  if (state.thread_index() == 0) {
    cache = MakeCache(kPageTokens, kPrompts * kTokens / kPageTokens / 2);
    prompts.clear();
    for (int i = 0; i < kPrompts; ++i) {
      std::vector<Token> prompt =
          Tokens(static_cast<uint64_t>(i % 16), kTokens);
      const std::vector<Token> rest =
          Tokens(static_cast<uint64_t>(1000 + i), kTokens / 2);
      std::copy(rest.begin(), rest.end(), prompt.begin() + kTokens / 2);
      prompts.push_back(std::move(prompt));
    }
  }
  std::minstd_rand random(static_cast<uint32_t>(state.thread_index() + 1));
  for (auto _ : state) {
    const std::vector<Token>& prompt = prompts[random() % kPrompts];
    const auto match = cache->Match({.session = kSession,
                                     .ns = kNamespace,
                                     .tokens = prompt,
                                     .lock = true,
                                     .reserve_tokens = kTokens});
    if (!match.ok()) {
      state.SkipWithError("not admitted");
      break;
    }
    const auto finish = cache->Insert(
        {.session = kSession,
         .ns = kNamespace,
         .tokens = std::span(prompt).subspan(match->matched_tokens),
         .pages = match->reserved,
         .anchor = match->lock,
         .lock_action = LockAction::kUnlock});
    if (!finish.ok()) state.SkipWithError("not finished");
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_Requests)->Threads(1)->Threads(8)->UseRealTime();

}  // namespace
}  // namespace pando::bench
