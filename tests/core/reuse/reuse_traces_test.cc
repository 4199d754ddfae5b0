// Tests of the policy reuse on made traces. The policy finds prompts that LRU
// does not, and its hits are never below LRU's by more than the bound of
// docs/design.md.

#include <map>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/environment.h"
#include "tests/core/reuse/made_traces.h"

namespace pando {
namespace {

using ::testing::IsEmpty;

using Kind = EvictionPolicyKind;

TEST(ReuseTracesTest, IsNeverBelowLruByMoreThanTheBound) {
  const uint64_t first_seed = FromEnvironment("PANDO_TEST_SEED", 1);
  for (uint64_t seed = first_seed; seed < first_seed + 3; ++seed) {
    SCOPED_TRACE(seed);
    for (const MadeTrace& trace : MadeTraces(seed)) {
      SCOPED_TRACE(trace.name);
      MadeCache lru(Kind::kLru);
      MadeCache reuse(Kind::kReuse);
      lru.Serve(trace.prompts);
      reuse.Serve(trace.prompts);
      EXPECT_THAT(reuse.cache().CheckInvariants(), IsEmpty());
      EXPECT_GE(static_cast<double>(reuse.hit_pages()),
                static_cast<double>(lru.hit_pages()) -
                    0.0015 * static_cast<double>(lru.requested_pages()));
      EXPECT_EQ(reuse.reuse().lru_hit_pages, lru.hit_pages());
    }
  }
}

TEST(ReuseTracesTest, FindsWhatLruDoesNot) {
  std::map<std::string, double> gains;  // a share of all requested pages
  for (const MadeTrace& trace : MadeTraces(1)) {
    MadeCache lru(Kind::kLru);
    MadeCache reuse(Kind::kReuse);
    lru.Serve(trace.prompts);
    reuse.Serve(trace.prompts);
    gains[trace.name] = (static_cast<double>(reuse.hit_pages()) -
                         static_cast<double>(lru.hit_pages())) /
                        static_cast<double>(lru.requested_pages());
    RecordProperty(trace.name, std::to_string(gains[trace.name]));
  }
  EXPECT_GT(gains["flood"], 0.05);
  EXPECT_GT(gains["phase change"], 0.1);
}

// The trace reserves no pages without caching them, so an LRU cache holds
// exactly the shadow's pages.
TEST(ReuseTracesTest, TheShadowOfLruIsLru) {
  for (const MadeTrace& trace : MadeTraces(1)) {
    SCOPED_TRACE(trace.name);
    MadeCache cache(Kind::kLru, {.learns_always = true});
    cache.Serve(trace.prompts);
    const ReuseStats stats = cache.reuse();
    EXPECT_EQ(stats.hit_pages, cache.hit_pages());
    EXPECT_EQ(stats.lru_hit_pages, cache.hit_pages());
    EXPECT_EQ(stats.requested_pages, cache.requested_pages());
    EXPECT_EQ(stats.gained_pages, 0);
    EXPECT_EQ(stats.debt_pages, 0u);
    EXPECT_THAT(cache.cache().CheckInvariants(), IsEmpty());
  }
}

// A cache that learnt before the switch gains hits from the first request after
// it.
TEST(ReuseTracesTest, ASwitchBeginsWithWhatWasLearnt) {
  std::vector<MadePrompt> flood;
  for (const MadeTrace& trace : MadeTraces(1)) {
    if (trace.name == "flood") flood = trace.prompts;
  }
  const std::span all(flood);
  MadeCache learning(Kind::kLru, {.learns_always = true});
  MadeCache other(Kind::kLru);
  for (const bool after : {false, true}) {
    for (const MadePrompt& prompt : after ? all.last(600) : all.first(5400)) {
      learning.Serve(prompt);
      other.Serve(prompt);
    }
    EXPECT_EQ(learning.hit_pages() > other.hit_pages(), after);
    EXPECT_EQ(learning.cache().SetEvictionPolicy(Kind::kReuse),
              other.cache().SetEvictionPolicy(Kind::kReuse));
    EXPECT_THAT(learning.cache().CheckInvariants(), IsEmpty());
    EXPECT_THAT(other.cache().CheckInvariants(), IsEmpty());
  }
}

TEST(ReuseTracesTest, TheSamePromptsGiveTheSameHits) {
  for (const MadeTrace& trace : MadeTraces(7)) {
    MadeCache once(Kind::kReuse);
    MadeCache again(Kind::kReuse);
    once.Serve(trace.prompts);
    again.Serve(trace.prompts);
    EXPECT_EQ(once.hit_pages(), again.hit_pages());
    EXPECT_EQ(once.reuse(), again.reuse());
  }
}

}  // namespace
}  // namespace pando
