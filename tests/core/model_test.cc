// Random programs must give the same answers on PrefixCache as on the naive
// reference, and the next process on the ledger must have what was cached.
// PANDO_TEST_SEED sets the seed (default 1). PANDO_TEST_OPERATIONS sets the
// total number of operations.

#include <algorithm>
#include <cstdint>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/operators/earlier_pages.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/environment.h"
#include "tests/core/event_mirror.h"
#include "tests/core/executor.h"
#include "tests/core/ledger_memory.h"
#include "tests/core/program_grid.h"

namespace pando::program {
namespace {

using ::testing::Bool;
using ::testing::Combine;
using ::testing::IsEmpty;
using ::testing::ValuesIn;

constexpr uint64_t kOperations = 1'100'000;
constexpr uint64_t kOperationsOfAProgram = 400;
constexpr uint64_t kProgramsToJudge = 10;
constexpr uint64_t kGridPoints = kPolicies.size() * kPageSizes.size() * 4;

std::string Listing(const std::vector<Operation>& program) {
  std::ostringstream out;
  for (const Operation& operation : program) out << operation << '\n';
  return out.str();
}

EventMirror::Pages CachedIn(PrefixCache& cache, uint32_t page_tokens) {
  EventMirror mirror(page_tokens);
  cache.StartEvents();
  std::vector<RawEvent> events;
  for (bool is_all = false; !is_all;) {
    is_all = cache.TakeEvents(events);
    EXPECT_THAT(mirror.Apply(events), IsEmpty());
  }
  return mirror.pages();
}

// Returns the locks of each session and how many pages it has reserved.
std::vector<std::pair<SessionNumber, uint32_t>> HoldingsOf(PrefixCache& cache) {
  std::vector<std::pair<SessionNumber, uint32_t>> holdings;
  constexpr uint32_t kAll = 100'000;
  for (const SessionInfo& info : cache.ListSessions(kAll).sessions) {
    if (info.is_internal) continue;
    holdings.emplace_back(info.number, info.reserved_pages);
    std::vector<std::pair<SessionNumber, uint32_t>> locks;
    for (const LockInfo& lock : cache.ListLocks(kAll, info.number).locks) {
      locks.emplace_back(info.number, lock.locked_tokens);
    }
    std::ranges::sort(locks);
    holdings.insert(holdings.end(), locks.begin(), locks.end());
  }
  return holdings;
}

// The policy, the page size, whether most prompts are bigram ones, and whether
// there are quotas.
using Param = std::tuple<EvictionPolicyKind, uint32_t, bool, bool>;

class ModelTest : public testing::TestWithParam<Param> {
 protected:
  // Runs one program. Each program has a pool of a different size, from far too
  // small to roomy.
  void RunProgram(uint64_t seed) {
    const auto [policy, page_tokens, is_bigram, has_quotas] = GetParam();
    const auto capacity = static_cast<uint32_t>(2 + seed * 7 % 46);
    const GridPoint point{policy,   page_tokens,   is_bigram,    has_quotas,
                          capacity, seed % 3 == 1, seed % 4 == 3};
    LedgerMemory ledger(OptionsAt(point));
    Executor executor(LedgerMemory::With(OptionsAt(point), ledger.memory()),
                      kCheckEvery);
    RandomOperations operations = OperationsAt(point, ChoicesOf(seed));
    std::vector<Operation> program;
    for (uint64_t i = 0; i < kOperationsOfAProgram; ++i) {
      program.push_back(operations.Next());
      const auto differences = executor.Run(program.back());
      ASSERT_THAT(differences, IsEmpty())
          << "after the last operation of, with " << point << ",\n"
          << Listing(program);
    }
    PageLedger::Complete(ledger.memory());
    PrefixCache next(LedgerMemory::With(OptionsAt(point), ledger.Copy()));
    const SessionId earlier(1);
    next.OpenSession(earlier, "earlier");
    next.Run(EarlierPages(earlier, earlier));
    ASSERT_EQ(CachedIn(next, page_tokens), executor.Cached()) << point;
    ASSERT_EQ(next.Stats().pages.protected_,
              executor.real().Stats().pages.protected_)
        << point;
    ASSERT_THAT(next.CheckInvariants(), IsEmpty()) << point;
    PrefixCache kept(LedgerMemory::With(OptionsAt(point), ledger.Copy(), true));
    ASSERT_EQ(HoldingsOf(kept), HoldingsOf(executor.real())) << point;
    ASSERT_EQ(kept.Stats().pages.protected_,
              executor.real().Stats().pages.protected_)
        << point;
    const SessionId internal(~uint64_t{0});
    kept.OpenSession(internal, "earlier", /*is_internal=*/true);
    kept.Run(EarlierPages(internal, internal));
    ASSERT_THAT(kept.CheckInvariants(), IsEmpty()) << point;
    succeeded_ += executor.succeeded();
    failed_ += executor.failed();
  }

  static constexpr uint64_t kCheckEvery = 4;

  uint64_t succeeded_ = 0;
  uint64_t failed_ = 0;
};

TEST_P(ModelTest, RandomProgramsGiveTheSameAnswers) {
  const uint64_t seed = FromEnvironment("PANDO_TEST_SEED", 1);
  const uint64_t operations =
      FromEnvironment("PANDO_TEST_OPERATIONS", kOperations) / kGridPoints;
  const uint64_t programs =
      std::max<uint64_t>(1, operations / kOperationsOfAProgram);
  for (uint64_t i = 0; i < programs && !HasFatalFailure(); ++i) {
    SCOPED_TRACE(
        absl::StrCat("PANDO_TEST_SEED=", seed + i, " PANDO_TEST_OPERATIONS=1"));
    RunProgram(seed + i);
  }
  if (programs < kProgramsToJudge) return;
  // The programs are only worth running if many operations succeed and many are
  // refused.
  EXPECT_GT(succeeded_, failed_);
  EXPECT_GT(failed_, succeeded_ / 10);
}

std::string NameOf(const testing::TestParamInfo<Param>& param) {
  const auto [policy, page_tokens, is_bigram, has_quotas] = param.param;
  return absl::StrCat(std::string(EvictionPolicyName(policy)), "_page",
                      page_tokens, is_bigram ? "_bigram" : "",
                      has_quotas ? "_quotas" : "");
}

INSTANTIATE_TEST_SUITE_P(Grid, ModelTest,
                         Combine(ValuesIn(kPolicies), ValuesIn(kPageSizes),
                                 Bool(), Bool()),
                         NameOf);

}  // namespace
}  // namespace pando::program
