// The longest step of each kind of work for operators, at a million pages: the
// longest time that a call may have to wait for it.
#include <benchmark/benchmark.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/check.h"
#include "bench/core/workload.h"
#include "core/journal/event_log.h"
#include "core/match/freeing.h"
#include "core/operators/eviction_work.h"
#include "core/operators/explanation.h"
#include "core/operators/listings.h"
#include "core/operators/policy_change.h"
#include "core/operators/tree_dump.h"
#include "core/reuse/ghost_runs.h"
#include "core/reuse/reuse_tables.h"

namespace pando::bench {
namespace {

constexpr uint32_t kPageTokens = 16;
constexpr uint64_t kLeaves = 1'000'000;  // of a page each
constexpr uint32_t kLocks = 65'536;      // what a session may have
constexpr uint32_t kMany = 10'000;       // sessions, namespaces
constexpr uint32_t kDepth = 15'000;      // of a path of nodes

// The CPU time of this thread: what other processes do does not count.
double CpuMilliseconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 +
         static_cast<double>(time.tv_nsec) * 1e-6;
}

// Calls `step` until it says that it was the last.
template <typename Step>
void RecordLongest(benchmark::State& state, Step step) {
  double longest = 0;
  int64_t steps = 0;
  for (auto _ : state) {
    for (bool is_last = false; !is_last; ++steps) {
      const double begin = CpuMilliseconds();
      is_last = step();
      longest = std::max(longest, CpuMilliseconds() - begin);
    }
  }
  state.counters["longest_ms"] = longest;
  state.counters["steps"] = static_cast<double>(steps);
}

std::unique_ptr<PrefixCache> MakeWideCache(
    EvictionPolicyKind policy = EvictionPolicyKind::kLru) {
  auto cache = MakeCache(kPageTokens, kLeaves + kMany, policy);
  PublishLeaves(*cache, kLeaves, kPageTokens);
  return cache;
}

void LockLeaves(PrefixCache& cache) {
  for (uint64_t leaf = 0; leaf < kLocks; ++leaf) {
    CHECK(cache
              .Lock({.session = kSession,
                     .ns = kNamespace,
                     .tokens = Tokens(leaf, kPageTokens)})
              .ok());
  }
}

template <typename Work>
void RecordWork(benchmark::State& state, PrefixCache& cache, Work work) {
  RecordLongest(state, [&] { return cache.Step(work); });
}

void BM_StepsOfEvict(benchmark::State& state) {
  const auto cache = MakeWideCache();
  RecordWork(state, *cache, EvictionWork(kLeaves));
}
void BM_StepsOfFlush(benchmark::State& state) {
  const auto cache = MakeWideCache();
  RecordWork(state, *cache, FlushWork());
}
void BM_StepsOfCheckInvariants(benchmark::State& state) {
  const auto cache = MakeWideCache();
  LockLeaves(*cache);
  RecordLongest(state, [&] {
    const auto violations = cache->CheckInvariantsStep();
    CHECK(!violations.has_value() || violations->empty());
    return violations.has_value();
  });
}
void BM_StepsOfDumpTree(benchmark::State& state) {
  const auto cache = MakeWideCache();
  RecordWork(state, *cache, TreeDumpWork(100'000, std::nullopt));
}
void BM_StepsOfListLocks(benchmark::State& state) {
  const auto cache = MakeWideCache();
  LockLeaves(*cache);
  RecordWork(state, *cache, LockListing(kMany, std::nullopt));
}
void BM_StepsOfReleaseLocks(benchmark::State& state) {
  const auto cache = MakeWideCache();
  LockLeaves(*cache);
  RecordWork(state, *cache, LockRelease(SessionNumber(1)));
}
// The calls of workers with many pages, which evict a million leaves.
void BM_StepsOfAllocate(benchmark::State& state) {
  const auto cache = MakeWideCache();
  RecordWork(state, *cache,
             cache->Start(AllocateRequest{
                 .session = kSession, .ns = kNamespace, .pages = kLeaves}));
}
void BM_StepsOfMatch(benchmark::State& state) {
  const auto cache = MakeWideCache();
  const std::vector<Token> prompt = Tokens(kLeaves + 1, 1'000'000);
  RecordWork(
      state, *cache,
      cache->Start(MatchRequest{.session = kSession,
                                .ns = kNamespace,
                                .tokens = prompt,
                                .lock = true,
                                .reserve_tokens = kLeaves * kPageTokens}));
}
void BM_StepsOfFree(benchmark::State& state) {
  const auto cache = MakeCache(kPageTokens, kLeaves);
  const auto pages = cache->Allocate({kSession, kNamespace, kLeaves})->pages;
  RecordWork(state, *cache, Freeing(kSession, pages, {}));
}
// A prompt of a million pages of one token.
void BM_StepsOfInsert(benchmark::State& state) {
  const auto cache = MakeCache(1, kLeaves);
  const auto pages = cache->Allocate({kSession, kNamespace, kLeaves})->pages;
  const std::vector<Token> prompt = Tokens(1, kLeaves);
  RecordWork(state, *cache,
             cache->Start(InsertRequest{.session = kSession,
                                        .ns = kNamespace,
                                        .tokens = prompt,
                                        .pages = pages}));
}
// Takes the steps of a session's end, one after the other.
template <typename F>
class HeldPart : public SteppedWork {
 public:
  explicit HeldPart(F part) : part_(std::move(part)) {}
  bool Step(CacheParts& parts) override { return part_(parts); }

 private:
  F part_;
};

// A path of nodes of a page each, with a lock at the end of each, which the
// session loses at its end.
void BM_StepsOfSessionEnd(benchmark::State& state) {
  const auto cache = MakeCache(1, kLocks);
  const std::vector<Token> path = Tokens(1, kLocks);
  Publish(*cache, path);
  PrefixHandle end = cache->Match({.ns = kNamespace, .tokens = path})->handle;
  for (uint32_t depth = kLocks; depth > 0; --depth) {
    end.tokens = depth;
    const auto match = cache->Match({.session = kSession,
                                     .ns = kNamespace,
                                     .tokens = {},
                                     .lock = true,
                                     .touch = false,
                                     .after = end});
    CHECK(match.ok() && match->matched_tokens == depth);
    end = match->handle;
  }
  bool has_begun = false;
  RecordWork(state, *cache, HeldPart([&](CacheParts& parts) {
               if (!std::exchange(has_begun, true)) {
                 parts.holdings.Close(kSession);
               }
               return !parts.holdings.EndStep();
             }));
  CHECK(cache->Stats().pages.evictable == kLocks);
}

// The longest of the inserts of a million leaves into an empty cache.
void BM_InsertsOfAMillionLeaves(benchmark::State& state) {
  const auto cache = MakeCache(kPageTokens, kLeaves);
  const auto pages = cache->Allocate(
      {.session = kSession, .ns = kNamespace, .pages = kLeaves});
  uint32_t leaf = 0;
  RecordLongest(state, [&] {
    const std::vector<Token> prompt = Tokens(leaf, kPageTokens);
    CHECK(cache
              ->Insert({.session = kSession,
                        .ns = kNamespace,
                        .tokens = prompt,
                        .pages = std::span(pages->pages).subspan(leaf, 1)})
              .ok());
    return ++leaf == kLeaves;
  });
}

void BM_StepsOfListSessions(benchmark::State& state) {
  const auto cache = MakeCache(kPageTokens, kMany);
  for (uint64_t id = 2; id <= kMany; ++id) {
    cache->OpenSession(SessionId(id), "a worker of some name");
  }
  RecordWork(state, *cache, SessionListing(kMany));
}
void BM_StepsOfListNamespaces(benchmark::State& state) {
  const auto cache = MakeCache(kPageTokens, kMany);
  const std::vector<Token> prompt = Tokens(1, kPageTokens);
  for (uint32_t i = 0; i < kMany; ++i) {
    const NamespaceKey ns{
        .extra_key = "a tenant of some name " + std::to_string(i),
        .cache_salt = {}};
    const auto pages =
        cache->Allocate({.session = kSession, .ns = ns, .pages = 1})->pages;
    CHECK(cache
              ->Insert({.session = kSession,
                        .ns = ns,
                        .tokens = prompt,
                        .pages = pages})
              .ok());
  }
  RecordWork(state, *cache, NamespaceListing(kMany));
}

// The pages of one lost session, to which a process may still write.
void BM_StepsOfFreeQuarantine(benchmark::State& state) {
  const auto cache = MakeCache(kPageTokens, kLeaves);
  CHECK(
      cache->Allocate({.session = kSession, .ns = kNamespace, .pages = kLeaves})
          .ok());
  CHECK(cache->AttachSession(kSession, std::nullopt).ok());
  cache->SuspendSession(kSession, absl::UnixEpoch());
  cache->ExpireSessions(absl::UnixEpoch(), absl::InfiniteDuration());
  QuarantineRelease release(SessionNumber(1));
  RecordLongest(state, [&] { return cache->Step(release); });
  CHECK(release.result().value() == kLeaves);
}

// A path of nodes with a lock at each; the prompt has the first of them.
void BM_StepsOfExplainMatch(benchmark::State& state) {
  const auto cache = MakeCache(1, kDepth + 1);
  const std::vector<Token> path = Tokens(1, kDepth);
  Publish(*cache, path);
  for (uint32_t depth = 1; depth <= kDepth; ++depth) {
    CHECK(cache
              ->Lock({.session = kSession,
                      .ns = kNamespace,
                      .tokens = std::span(path).first(depth)})
              .ok());
  }
  const std::vector<Token> prompt = {path[0], 0};
  RecordWork(state, *cache, Explanation(kNamespace, prompt));
}

// A request's part of the fit under `reuse`, at its longest: rounds are as
// short as at the beginning, but of all classes something is known, and each
// has a leaf, so that its indexes are fitted at once. The same
// steps are taken several times, and of each the shortest time counts.
void BM_StepsOfReuseFit(benchmark::State& state) {
  constexpr uint32_t kTick = 1;
  std::vector<double> shortest(1'000, std::numeric_limits<double>::max());
  for (auto _ : state) {
    const auto tables = std::make_unique<ReuseTables>();
    for (uint32_t reuse_class = 0; reuse_class < kReuseClasses; ++reuse_class) {
      tables->CountReached(reuse_class, 0, 1);
    }
    for (double& time : shortest) {
      const double begin = CpuMilliseconds();
      const ReuseTables::Refitted refitted = tables->FitStep(kTick, 1);
      for (uint32_t c = refitted.first; c < refitted.end; ++c) {
        benchmark::DoNotOptimize(tables->index(c, 0));
      }
      time = std::min(time, CpuMilliseconds() - begin);
    }
  }
  state.counters["longest_ms"] = *std::ranges::max_element(shortest);
}

// The cost of a watcher that comes when a million leaves are cached already.
void BM_TakeEventsAfterStart(benchmark::State& state) {
  const auto cache = MakeWideCache();
  cache->StartEvents();
  std::vector<RawEvent> events;
  RecordLongest(state, [&] { return cache->TakeEvents(events); });
}

// From lru to ranks and back.
void BM_StepsOfSetEvictionPolicy(benchmark::State& state) {
  const auto cache = MakeWideCache();
  PolicyChange there(EvictionPolicyKind::kLfu);
  PolicyChange back(EvictionPolicyKind::kLru);
  bool is_there = false;
  RecordLongest(state, [&] {
    if (is_there) return cache->Step(back);
    is_there = cache->Step(there);
    return false;
  });
}
void BM_StepsOfSetReusePolicy(benchmark::State& state) {
  const auto cache = MakeWideCache();
  RecordWork(state, *cache, PolicyChange(EvictionPolicyKind::kReuse));
}
// A learner that knows all leaves and as many ghosts as it may goes.
void BM_StepsOfUnsetReusePolicy(benchmark::State& state) {
  const auto cache = MakeWideCache(EvictionPolicyKind::kReuse);
  for (uint64_t leaf = 0; leaf < kMany + GhostRuns::kMaxGhosts; ++leaf) {
    Publish(*cache, Tokens(kLeaves + leaf, kPageTokens));
  }
  // Two of one print are taken for one.
  CHECK(cache->Stats().reuse->ghosts > GhostRuns::kMaxGhosts - 100);
  RecordWork(state, *cache, PolicyChange(EvictionPolicyKind::kLru));
}

BENCHMARK(BM_StepsOfEvict)->Iterations(1);
BENCHMARK(BM_StepsOfFlush)->Iterations(1);
BENCHMARK(BM_StepsOfCheckInvariants)->Iterations(1);
BENCHMARK(BM_StepsOfDumpTree)->Iterations(1);
BENCHMARK(BM_StepsOfListLocks)->Iterations(1);
BENCHMARK(BM_StepsOfReleaseLocks)->Iterations(1);
BENCHMARK(BM_StepsOfAllocate)->Iterations(1);
BENCHMARK(BM_StepsOfMatch)->Iterations(1);
BENCHMARK(BM_StepsOfFree)->Iterations(1);
BENCHMARK(BM_StepsOfInsert)->Iterations(1);
BENCHMARK(BM_StepsOfFreeQuarantine)->Iterations(1);
BENCHMARK(BM_StepsOfSessionEnd)->Iterations(1);
BENCHMARK(BM_InsertsOfAMillionLeaves)->Iterations(1);
BENCHMARK(BM_StepsOfListSessions)->Iterations(1);
BENCHMARK(BM_StepsOfListNamespaces)->Iterations(1);
BENCHMARK(BM_StepsOfExplainMatch)->Iterations(1);
BENCHMARK(BM_TakeEventsAfterStart)->Iterations(1);
BENCHMARK(BM_StepsOfReuseFit)->Iterations(10);
BENCHMARK(BM_StepsOfSetEvictionPolicy)->Iterations(1);
BENCHMARK(BM_StepsOfSetReusePolicy)->Iterations(1);
BENCHMARK(BM_StepsOfUnsetReusePolicy)->Iterations(1);

}  // namespace
}  // namespace pando::bench
