// Tests of the hints that inserts give about the next use of the published
// pages.

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tests/core/cache_fixture.h"

namespace pando {
namespace {

using ::testing::IsEmpty;

const NamespaceKey kPatient{"patient", std::nullopt};
const NamespaceKey kBusy{"busy", std::nullopt};
const NamespaceKey kPlain{"plain", std::nullopt};

// A test with sixteen pages of one token each. Two quota classes may retain
// leaves for ten seconds, all others not at all.
class HintsTest : public testing::TestWithParam<EvictionPolicyKind> {
 protected:
  using Prompt = std::vector<Token>;

  HintsTest() {
    cache_.OpenSession(session_, "one");
    PassSeconds(1'000'000);
  }
  void TearDown() override { EXPECT_THAT(cache_.CheckInvariants(), IsEmpty()); }

  void PassSeconds(int seconds) {
    now_ += absl::Seconds(seconds);
    cache_.ExpireSessions(now_, absl::ZeroDuration());
  }

  absl::StatusOr<InsertResult> Insert(const NamespaceKey& ns,
                                      const Prompt& prompt,
                                      ExpectedReuse expected = {},
                                      uint32_t retain_seconds = 0) {
    const auto cached = Pages(ns, prompt);
    auto missing = cache_.Allocate(
        {.session = session_,
         .ns = ns,
         .pages = static_cast<uint32_t>(prompt.size() - cached.size())});
    EXPECT_EQ(Outcome(missing), "OK");
    const auto pages = Concat(cached, missing->pages);
    return cache_.Insert({.session = session_,
                          .ns = ns,
                          .tokens = prompt,
                          .pages = pages,
                          .expected_reuse = expected,
                          .retain_seconds = retain_seconds});
  }
  std::vector<PageId> Pages(const NamespaceKey& ns, const Prompt& prompt) {
    return cache_
        .Match({.session = {}, .ns = ns, .tokens = prompt, .touch = false})
        ->pages;
  }
  size_t Cached(const NamespaceKey& ns, const Prompt& prompt) {
    return Pages(ns, prompt).size();
  }
  uint64_t Spared(const std::string& name) {
    for (const QuotaClassStats& c : cache_.Stats().quota_classes) {
      if (c.name == name) return c.spared_leaves;
    }
    ADD_FAILURE() << "no class " << name;
    return 0;
  }

  const SessionId session_{1};
  absl::Time now_ = absl::UnixEpoch();
  PrefixCache cache_{
      {.page_tokens = 1,
       .capacity_pages = 17,
       .eviction_policy = GetParam(),
       .quota_classes = {
           {.name = "patient",
            .pattern = "patient",
            .max_retention_seconds = 10},
           {.name = "busy", .pattern = "busy", .max_retention_seconds = 10}}}};
};

TEST_P(HintsTest, AnEndedPrefixGoesFirstWhateverThePolicy) {
  for (Token token = 1; token <= 5; ++token) {
    ASSERT_EQ(Outcome(Insert(kPlain, {token},
                             token == 3 ? ExpectedReuse::kEnded
                                        : ExpectedReuse::kUnknown)),
              "OK");
  }
  EXPECT_EQ(cache_.Evict(1), 1u);
  EXPECT_EQ(Cached(kPlain, {3}), 0u);
  EXPECT_EQ(cache_.Stats().measured.evicted_ended_pages, 1u);
}

TEST_P(HintsTest, WhatAnEndedPrefixSharesStays) {
  ASSERT_EQ(Outcome(Insert(kPlain, {1, 2, 3})), "OK");
  ASSERT_EQ(Outcome(Insert(kPlain, {1, 2, 4})), "OK");
  ASSERT_EQ(Outcome(Insert(kPlain, {1, 2, 4, 5}, ExpectedReuse::kEnded)), "OK");
  ASSERT_EQ(Outcome(Insert(kPlain, {9})), "OK");
  EXPECT_EQ(cache_.Evict(2), 2u);
  EXPECT_EQ(Cached(kPlain, {1, 2, 4, 5}), 2u);
  EXPECT_EQ(Cached(kPlain, {1, 2, 3}), 3u);
  EXPECT_EQ(Cached(kPlain, {9}), 1u);
  EXPECT_EQ(cache_.Stats().measured.evicted_ended_pages, 2u);
}

TEST_P(HintsTest, AnyUseOfAnEndedPrefixForgetsTheHint) {
  for (const bool extends : {false, true}) {
    ASSERT_EQ(Outcome(Insert(kPlain, {1, 2}, ExpectedReuse::kEnded)), "OK");
    const Prompt used = extends ? Prompt{1, 2, 3} : Prompt{1, 2};
    ASSERT_EQ(Outcome(Insert(kPlain, used)), "OK");
    cache_.Evict(1);
    EXPECT_EQ(cache_.Stats().measured.evicted_ended_pages, 0u);
    cache_.Flush();
  }
}

TEST_P(HintsTest, ALockKeepsAnEndedPrefixUntilItIsReleased) {
  ASSERT_EQ(Outcome(Insert(kPlain, {1, 2})), "OK");
  ASSERT_EQ(Outcome(Insert(kPlain, {9})), "OK");
  const LockId lock =
      cache_.Lock({.session = session_, .ns = kPlain, .tokens = Prompt{1, 2}})
          ->lock;
  const Prompt none;
  ASSERT_EQ(Outcome(cache_.Insert({.session = session_,
                                   .ns = kPlain,
                                   .tokens = none,
                                   .pages = {},
                                   .anchor = lock,
                                   .expected_reuse = ExpectedReuse::kEnded})),
            "OK");
  EXPECT_EQ(cache_.Evict(9), 1u);
  EXPECT_EQ(Cached(kPlain, {1, 2}), 2u);
  ASSERT_EQ(Outcome(Insert(kPlain, {8})), "OK");
  ASSERT_EQ(Outcome(cache_.Unlock(session_, std::vector{lock})), "OK");
  EXPECT_EQ(cache_.Evict(2), 2u);
  EXPECT_EQ(Cached(kPlain, {8}), 1u);
}

TEST_P(HintsTest, ASwitchOfThePolicyKeepsWhatHasEnded) {
  for (Token token = 1; token <= 5; ++token) {
    ASSERT_EQ(Outcome(Insert(kPlain, {token},
                             token == 3 ? ExpectedReuse::kEnded
                                        : ExpectedReuse::kUnknown)),
              "OK");
  }
  cache_.SetEvictionPolicy(EvictionPolicyKind::kSlru);
  EXPECT_EQ(cache_.Evict(1), 1u);
  EXPECT_EQ(Cached(kPlain, {3}), 0u);
}

TEST_P(HintsTest, WhatIsFlushedIsNotSaidToHaveGoneBecauseItHadEnded) {
  ASSERT_EQ(Outcome(Insert(kPlain, {1, 2}, ExpectedReuse::kEnded)), "OK");
  cache_.Flush();
  EXPECT_EQ(cache_.Stats().measured.evicted_ended_pages, 0u);
}

TEST_P(HintsTest, RetentionIsNeverAPin) {
  for (Token token = 1; token <= 16; ++token) {
    ASSERT_EQ(Outcome(Insert(kPatient, {token}, ExpectedReuse::kSoon)), "OK");
  }
  const auto all =
      cache_.Allocate({.session = session_, .ns = kPlain, .pages = 16});
  EXPECT_EQ(Outcome(all), "OK");
}

TEST_P(HintsTest, AnEndAndARetentionContradictEachOther) {
  EXPECT_EQ(Outcome(cache_.Insert({.session = session_,
                                   .ns = kPatient,
                                   .tokens = {},
                                   .pages = {},
                                   .expected_reuse = ExpectedReuse::kEnded,
                                   .retain_seconds = 1})),
            "INVALID_FIELD");
}

INSTANTIATE_TEST_SUITE_P(
    Policies, HintsTest,
    testing::Values(EvictionPolicyKind::kLru, EvictionPolicyKind::kLfu,
                    EvictionPolicyKind::kFifo, EvictionPolicyKind::kMru,
                    EvictionPolicyKind::kFilo, EvictionPolicyKind::kPriority,
                    EvictionPolicyKind::kSlru, EvictionPolicyKind::kReuse),
    [](const testing::TestParamInfo<EvictionPolicyKind>& kind) {
      return std::string(EvictionPolicyName(kind.param));
    });

// The policies that look at the last use.
class RetentionTest : public HintsTest {};

TEST_P(RetentionTest, ARetainedLeafIsSparedUntilItsTime) {
  ASSERT_EQ(Outcome(Insert(kPatient, {1}, ExpectedReuse::kUnknown, 4)), "OK");
  for (Token token = 2; token <= 5; ++token) {
    ASSERT_EQ(Outcome(Insert(kPatient, {token})), "OK");
  }
  PassSeconds(3);
  EXPECT_EQ(cache_.Evict(1), 1u);
  EXPECT_EQ(Cached(kPatient, {1}), 1u);
  EXPECT_EQ(Cached(kPatient, {2}), 0u);
  EXPECT_EQ(Spared("patient"), 1u);
  PassSeconds(1);
  EXPECT_EQ(cache_.Evict(4), 4u);
  EXPECT_EQ(Cached(kPatient, {1}), 0u);
  EXPECT_EQ(Spared("patient"), 1u);
}

TEST_P(RetentionTest, AClassAllowsAtMostSoMuch) {
  ASSERT_EQ(Outcome(Insert(kPatient, {1}, ExpectedReuse::kSoon, 1'000)), "OK");
  ASSERT_EQ(Outcome(Insert(kPatient, {2})), "OK");
  PassSeconds(10);
  EXPECT_EQ(cache_.Evict(1), 1u);
  EXPECT_EQ(Cached(kPatient, {1}), 0u);
}

TEST_P(RetentionTest, AClassThatAllowsNoneIgnoresIt) {
  ASSERT_EQ(Outcome(Insert(kPlain, {1}, ExpectedReuse::kSoon, 5)), "OK");
  ASSERT_EQ(Outcome(Insert(kPlain, {2})), "OK");
  EXPECT_EQ(cache_.Evict(1), 1u);
  EXPECT_EQ(Cached(kPlain, {1}), 0u);
}

TEST_P(RetentionTest, TheClassOfASparedLeafPays) {
  ASSERT_EQ(Outcome(Insert(kPatient, {1}, ExpectedReuse::kSoon)), "OK");
  ASSERT_EQ(Outcome(Insert(kPlain, {1})), "OK");
  ASSERT_EQ(Outcome(Insert(kPatient, {2})), "OK");
  EXPECT_EQ(cache_.Evict(1), 1u);
  EXPECT_EQ(Cached(kPatient, {2}), 0u);
  EXPECT_EQ(Cached(kPatient, {1}), 1u);
  EXPECT_EQ(Cached(kPlain, {1}), 1u);
}

// One worker publishes without pause and retains each prompt for as long as
// possible. A prompt that is inserted without a hint in between stays cached,
// unused, for at least a quarter of the evictions that it would survive if no
// prompt were retained. The cache holds eight prompts.
TEST_P(RetentionTest, AWorkerThatRetainsAllDoesNotStarveOthers) {
  Token next = 100;
  const auto flood = [&] {
    ASSERT_EQ(Outcome(Insert(kBusy, {next++, next}, ExpectedReuse::kSoon)),
              "OK");
  };
  for (int i = 0; i < 50; ++i) flood();
  for (Token token = 1; token <= 10; ++token) {
    ASSERT_EQ(Outcome(Insert(kBusy, {token, token})), "OK");
    flood();
    EXPECT_EQ(Cached(kBusy, {token, token}), 2u);
    for (int i = 0; i < 8; ++i) flood();
    EXPECT_EQ(Cached(kBusy, {token, token}), 0u);
  }
}

TEST_P(RetentionTest, ARetainedLeafThatHasLostItsEndIsNotSparedAnyMore) {
  ASSERT_EQ(Outcome(Insert(kPatient, {1, 2, 3}, ExpectedReuse::kSoon)), "OK");
  EXPECT_EQ(cache_.Evict(1), 1u);
  EXPECT_EQ(Cached(kPatient, {1, 2, 3}), 2u);
  ASSERT_EQ(Outcome(Insert(kPatient, {4})), "OK");
  ASSERT_EQ(Outcome(Insert(kPatient, {4})), "OK");
  EXPECT_EQ(cache_.Evict(2), 2u);
  EXPECT_EQ(Cached(kPatient, {1, 2, 3}), 0u);
  EXPECT_EQ(Spared("patient"), 0u);
}

INSTANTIATE_TEST_SUITE_P(
    Policies, RetentionTest,
    testing::Values(EvictionPolicyKind::kLru, EvictionPolicyKind::kLfu,
                    EvictionPolicyKind::kPriority, EvictionPolicyKind::kSlru,
                    EvictionPolicyKind::kReuse),
    [](const testing::TestParamInfo<EvictionPolicyKind>& kind) {
      return std::string(EvictionPolicyName(kind.param));
    });

// Sparing a leaf makes that leaf the most recently used one, but slru still
// evicts a leaf with one insert before leaves with more. A leaf that remains
// the first after being spared is evicted.
TEST(RankedRetentionTest, ALeafThatIsStillTheFirstGoes) {
  const SessionId session(1);
  PrefixCache cache(
      {.page_tokens = 1,
       .capacity_pages = 17,
       .eviction_policy = EvictionPolicyKind::kSlru,
       .quota_classes = {
           {.name = "patient", .pattern = "*", .max_retention_seconds = 10}}});
  cache.OpenSession(session, "one");
  cache.ExpireSessions(absl::UnixEpoch() + absl::Hours(1),
                       absl::ZeroDuration());
  const auto pages =
      cache.Allocate({.session = session, .ns = kPatient, .pages = 2});
  ASSERT_EQ(Outcome(pages), "OK");
  const auto insert = [&](Token token, PageId page, ExpectedReuse expected) {
    return Outcome(cache.Insert({.session = session,
                                 .ns = kPatient,
                                 .tokens = {&token, 1},
                                 .pages = {&page, 1},
                                 .expected_reuse = expected}));
  };
  for (int use = 0; use < 3; ++use) {
    ASSERT_EQ(insert(1, pages->pages[0], ExpectedReuse::kUnknown), "OK");
  }
  ASSERT_EQ(insert(2, pages->pages[1], ExpectedReuse::kSoon), "OK");
  EXPECT_EQ(cache.Evict(1), 1u);
  const Token first = 1;
  EXPECT_EQ(cache.Match({.ns = kPatient, .tokens = {&first, 1}})->pages.size(),
            1u);
  for (const QuotaClassStats& c : cache.Stats().quota_classes) {
    EXPECT_EQ(c.spared_leaves, 0u);
  }
  EXPECT_THAT(cache.CheckInvariants(), IsEmpty());
}

}  // namespace
}  // namespace pando
