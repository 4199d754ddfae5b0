// The steps of one request: lock and unlock, and insert.
#include <benchmark/benchmark.h>

#include <memory>
#include <vector>

#include "bench/core/workload.h"

namespace pando::bench {
namespace {

constexpr uint32_t kPageTokens = 16;

void BM_LockUnlock(benchmark::State& state) {
  const auto cache = MakeCache(kPageTokens, 1024);
  const std::vector<Token> prompt = Tokens(1, 1024);
  PublishPath(*cache, prompt, static_cast<int>(state.range(0)));
  const PrefixHandle end =
      cache->Match({.ns = kNamespace, .tokens = prompt})->handle;
  for (auto _ : state) {
    const auto lock = cache->Lock(
        {.session = kSession, .ns = kNamespace, .tokens = {}, .after = end});
    if (!cache->Unlock(kSession, {&lock->lock, 1}).ok()) {
      state.SkipWithError("not unlocked");
    }
  }
}
BENCHMARK(BM_LockUnlock)->Arg(1)->Arg(5)->Arg(64);

enum class Anchor { kNone, kLock, kHandle };

// 512 new tokens after a cached prefix of state.range(0) tokens; evicting them
// again is not timed.
void Insert(benchmark::State& state, Anchor anchor) {
  constexpr size_t kNewTokens = 512;
  const auto prefix_tokens = static_cast<size_t>(state.range(0));
  const auto cache =
      MakeCache(kPageTokens, (prefix_tokens + 2 * kNewTokens) / kPageTokens);
  std::vector<Token> prompt = Tokens(1, prefix_tokens + kNewTokens);
  const auto prefix = std::span(prompt).first(prefix_tokens);
  const std::vector<PageId> prefix_pages = Publish(*cache, prefix);
  const auto lock =
      cache->Lock({.session = kSession, .ns = kNamespace, .tokens = prefix});
  for (auto _ : state) {
    state.PauseTiming();
    cache->Evict(kNewTokens / kPageTokens);
    std::vector<PageId> pages =
        cache
            ->Allocate(
                {.session = kSession,
                 .ns = kNamespace,
                 .pages = static_cast<uint32_t>(kNewTokens / kPageTokens)})
            ->pages;
    if (anchor == Anchor::kNone) {
      pages.insert(pages.begin(), prefix_pages.begin(), prefix_pages.end());
    }
    state.ResumeTiming();
    const auto inserted = cache->Insert(
        {.session = kSession,
         .ns = kNamespace,
         .tokens = anchor == Anchor::kNone
                       ? std::span<const Token>(prompt)
                       : std::span<const Token>(prompt).subspan(prefix_tokens),
         .pages = pages,
         .anchor = anchor == Anchor::kLock ? lock->lock : LockId(),
         .after = anchor == Anchor::kHandle ? lock->handle : PrefixHandle()});
    if (!inserted.ok()) state.SkipWithError("not inserted");
  }
}
void BM_InsertWhole(benchmark::State& state) { Insert(state, Anchor::kNone); }
void BM_InsertAtLock(benchmark::State& state) { Insert(state, Anchor::kLock); }
void BM_InsertAtHandle(benchmark::State& state) {
  Insert(state, Anchor::kHandle);
}
BENCHMARK(BM_InsertWhole)->Arg(8192)->Arg(65'536)->Iterations(4096);
BENCHMARK(BM_InsertAtLock)->Arg(8192)->Arg(65'536)->Iterations(4096);
BENCHMARK(BM_InsertAtHandle)->Arg(8192)->Arg(65'536)->Iterations(4096);

void BM_CopyOf512Tokens(benchmark::State& state) {
  const std::vector<Token> tokens = Tokens(1, 512);
  for (auto _ : state) {
    std::vector<Token> copy = tokens;
    benchmark::DoNotOptimize(copy.data());
  }
}
BENCHMARK(BM_CopyOf512Tokens);

}  // namespace
}  // namespace pando::bench
