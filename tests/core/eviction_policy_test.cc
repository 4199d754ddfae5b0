// Checks that every policy keeps the same promises and evicts in its own order.

#include "core/eviction/eviction_policy.h"

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/core/cache_fixture.h"

namespace pando {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Values;

using Kind = EvictionPolicyKind;

const auto kAllPolicies =
    Values(Kind::kLru, Kind::kLfu, Kind::kFifo, Kind::kMru, Kind::kFilo,
           Kind::kPriority, Kind::kSlru, Kind::kReuse);

std::string NameOf(const testing::TestParamInfo<Kind>& param) {
  return std::string(EvictionPolicyName(param.param));
}

class EvictionPolicyTest : public CacheFixture,
                           public testing::WithParamInterface<Kind> {
 protected:
  EvictionPolicyTest() { cache_.SetEvictionPolicy(GetParam()); }

  void PublishAs(std::string_view letters, int32_t priority) {
    const auto pages = Allocate(static_cast<uint32_t>(letters.size()));
    const auto tokens = Spell(letters);
    ASSERT_EQ(Outcome(cache_.Insert({.session = session_,
                                     .ns = kNoNamespace,
                                     .tokens = tokens,
                                     .pages = pages,
                                     .priority = priority})),
              "OK");
  }
  // Evicts page by page. Returns the letters of the prompts in the order of
  // eviction.
  std::string EvictAllOf(const std::vector<std::string>& prompts) {
    std::string order;
    std::vector<std::string> left = prompts;
    while (cache_.Evict(1) == 1) {
      std::erase_if(left, [&](const std::string& letters) {
        const bool is_gone = CachedPages(letters) < letters.size();
        if (is_gone) order += letters;
        return is_gone;
      });
    }
    return order;
  }
};

TEST_P(EvictionPolicyTest, EvictsNothingOfAnEmptyCache) {
  EXPECT_EQ(cache_.Evict(1), 0u);
}

// The prompts a, b, c and d have one, three, one and two hits. a is used last.
TEST_P(EvictionPolicyTest, EvictsInItsOrder) {
  PublishAs("a", 1);
  PublishAs("b", 4);
  PublishAs("c", 2);
  PublishAs("d", 3);
  PublishAs("b", 0);  // frees the duplicate page
  PublishAs("b", 0);
  PublishAs("d", 0);
  Touch("a");
  const std::map<Kind, std::string> orders = {
      {Kind::kLru, "cbda"},  {Kind::kLfu, "cadb"},  {Kind::kFifo, "abcd"},
      {Kind::kMru, "adbc"},  {Kind::kFilo, "dcba"}, {Kind::kPriority, "acdb"},
      {Kind::kSlru, "cabd"}, {Kind::kReuse, "cbda"}};  // as lru, at first
  EXPECT_EQ(EvictAllOf({"a", "b", "c", "d"}), orders.at(GetParam()));
}

TEST_P(EvictionPolicyTest, TrimsALeafFromItsTailAndFreesExactlyWhatWasAsked) {
  for (uint32_t pages = 0; pages <= 6; ++pages) {
    const auto all = Publish("abcdef");
    EXPECT_EQ(cache_.Evict(pages), pages);
    EXPECT_EQ(PagesOf("abcdef"), std::vector(all.begin(), all.end() - pages));
    EXPECT_EQ(Counts().free, kUsable - 6 + pages);
    cache_.Flush();
  }
}

TEST_P(EvictionPolicyTest, CascadesToTheParentsOfWhatIsGone) {
  const auto trunk = Publish("ab");
  ASSERT_EQ(Outcome(Insert("abcd", Concat(trunk, Allocate(2)))), "OK");
  ASSERT_EQ(Outcome(Insert("abef", Concat(trunk, Allocate(2)))), "OK");
  EXPECT_EQ(cache_.Evict(5), 5u);
  EXPECT_THAT(PagesOf("ab"), ElementsAre(trunk[0]));
  EXPECT_EQ(cache_.Evict(5), 1u);
  EXPECT_EQ(Nodes(), 0u);
}

TEST_P(EvictionPolicyTest, NeverTakesWhatIsLockedAndGivesLessWhenShort) {
  Publish("abcd");
  Publish("ef");
  Lock("ab");
  Lock("ef");
  EXPECT_EQ(cache_.Evict(100), 2u);
  EXPECT_EQ(CachedPages("abcd"), 2u);
  EXPECT_EQ(CachedPages("ef"), 2u);
  EXPECT_EQ(cache_.Evict(100), 0u);
}

TEST_P(EvictionPolicyTest, WhatIsUnlockedCanBeEvictedAgain) {
  Publish("abcd");
  const LockId lock = Lock("abcd");
  EXPECT_EQ(cache_.Evict(1), 0u);
  ASSERT_EQ(Outcome(Unlock(lock)), "OK");
  EXPECT_EQ(cache_.Evict(100), 4u);
}

TEST_P(EvictionPolicyTest, ALeafThatGrowsAChildIsNoLeafUntilThatIsGone) {
  const auto front = Publish("ab");
  const LockId lock = Lock("ab");
  ASSERT_EQ(Outcome(InsertAt(lock, "c", Allocate(1), LockAction::kUnlock)),
            "OK");
  EXPECT_EQ(cache_.Evict(1), 1u);
  EXPECT_EQ(PagesOf("abc"), front);
  EXPECT_EQ(cache_.Evict(2), 2u);
}

TEST_P(EvictionPolicyTest, TheSameCallsEvictTheSamePages) {
  std::vector<std::vector<PageId>> histories;
  for (int run = 0; run < 2; ++run) {
    PrefixCache cache({.page_tokens = 1,
                       .capacity_pages = 40,
                       .eviction_policy = GetParam()});
    cache.OpenSession(session_, "same");
    std::mt19937_64 random(7);
    auto& history = histories.emplace_back();
    for (int i = 0; i < 300; ++i) {
      std::vector<Token> tokens(1 + random() % 9);
      for (Token& token : tokens) token = random() % 3;
      const auto match =
          cache.Match({.session = session_,
                       .ns = kNoNamespace,
                       .tokens = tokens,
                       .lock = true,
                       .reserve_tokens = static_cast<uint32_t>(tokens.size())});
      ASSERT_EQ(Outcome(match), "OK");
      history.insert(history.end(), match->reserved.begin(),
                     match->reserved.end());
      ASSERT_EQ(Outcome(cache.Insert(
                    {.session = session_,
                     .ns = kNoNamespace,
                     .tokens = std::span(tokens).subspan(match->matched_tokens),
                     .pages = match->reserved,
                     .anchor = match->lock,
                     .lock_action = LockAction::kUnlock})),
                "OK");
    }
  }
  EXPECT_EQ(histories[0], histories[1]);
}

TEST_P(EvictionPolicyTest, ASwitchLosesNothing) {
  const auto pages = Publish("abcd");
  Publish("aef");
  Lock("abc");
  const PageCounts before = Counts();
  for (const Kind kind : {Kind::kMru, Kind::kReuse, Kind::kLru, Kind::kReuse,
                          Kind::kReuse, Kind::kSlru, Kind::kLru}) {
    const Kind previous = cache_.Stats().eviction_policy;
    EXPECT_EQ(cache_.SetEvictionPolicy(kind), previous);
    EXPECT_EQ(cache_.Stats().eviction_policy, kind);
    EXPECT_THAT(cache_.CheckInvariants(), IsEmpty());
  }
  EXPECT_EQ(PagesOf("abcd"), pages);
  EXPECT_EQ(Counts().evictable, before.evictable);
  EXPECT_EQ(Counts().protected_, before.protected_);
  EXPECT_EQ(cache_.Evict(100), before.evictable);
}

INSTANTIATE_TEST_SUITE_P(Policies, EvictionPolicyTest, kAllPolicies, NameOf);

class HitCountTest : public CacheFixture {
 protected:
  HitCountTest() { cache_.SetEvictionPolicy(Kind::kLfu); }
};

TEST_F(HitCountTest, ChunksOfAPrefillAreNotCounted) {
  const auto match = MatchAndLock("ab", 2 * kPageTokens);
  const std::span pages(match->reserved);
  ASSERT_EQ(
      Outcome(InsertAt(match->lock, "a", {pages[0]}, LockAction::kRelock)),
      "OK");
  ASSERT_EQ(
      Outcome(InsertAt(match->lock, "b", {pages[1]}, LockAction::kRelock)),
      "OK");
  ASSERT_EQ(Outcome(Unlock(match->lock)), "OK");
  Publish("c");  // has one hit, while a chunk has none
  Touch("ab");
  EXPECT_EQ(cache_.Evict(2), 2u);
  EXPECT_EQ(CachedPages("c"), 1u);
}

TEST_F(HitCountTest, TheFinalInsertCountsForTheWholePath) {
  const auto match = MatchAndLock("ab", 2 * kPageTokens);
  const std::span pages(match->reserved);
  Publish("c");
  ASSERT_EQ(
      Outcome(InsertAt(match->lock, "a", {pages[0]}, LockAction::kRelock)),
      "OK");
  ASSERT_EQ(
      Outcome(InsertAt(match->lock, "b", {pages[1]}, LockAction::kUnlock)),
      "OK");
  EXPECT_EQ(cache_.Evict(1), 1u);  // all have one hit, so the oldest goes
  EXPECT_EQ(CachedPages("c"), 0u);
}

TEST_F(HitCountTest, AMatchIsNoHit) {
  Publish("a");
  Publish("b");
  Publish("b");
  for (int i = 0; i < 5; ++i) Touch("a");
  EXPECT_EQ(cache_.Evict(1), 1u);
  EXPECT_EQ(CachedPages("b"), 1u);
}

TEST_F(HitCountTest, ASplitCopiesHits) {
  Publish("ab");
  Publish("ab");  // gives two hits
  Publish("c");
  Publish("c");
  Publish("ad");  // splits the node: a has three hits, b two
  EXPECT_EQ(cache_.Evict(1), 1u);
  EXPECT_EQ(CachedPages("ad"), 1u);
  EXPECT_EQ(cache_.Evict(2), 2u);
  EXPECT_EQ(CachedPages("ab"), 1u);
  EXPECT_EQ(CachedPages("c"), 0u);
}

TEST(PriorityTest, IsTheMaximumAlongThePath) {
  PrefixCache cache({.page_tokens = 1,
                     .capacity_pages = 10,
                     .eviction_policy = Kind::kPriority});
  const SessionId session(1);
  cache.OpenSession(session, "one");
  const auto publish = [&](std::vector<Token> tokens, int32_t priority) {
    const auto pages =
        cache
            .Allocate({.session = session,
                       .ns = kNoNamespace,
                       .pages = static_cast<uint32_t>(tokens.size())})
            ->pages;
    ASSERT_EQ(Outcome(cache.Insert({.session = session,
                                    .ns = kNoNamespace,
                                    .tokens = tokens,
                                    .pages = pages,
                                    .priority = priority})),
              "OK");
  };
  publish({1}, -3);
  publish({2}, 1);
  publish({1, 3}, 2);  // raises the priority of {1}
  publish({1, 3}, 0);  // lowers nothing
  const auto matched = [&](std::vector<Token> tokens) {
    return cache.Match({.ns = kNoNamespace, .tokens = tokens, .touch = false})
        ->matched_tokens;
  };
  EXPECT_EQ(cache.Evict(1), 1u);
  EXPECT_EQ(matched({2}), 0u);
  EXPECT_EQ(cache.Evict(1), 1u);
  EXPECT_EQ(matched({1, 3}), 1u);
}

TEST(PolicyNameTest, EveryPolicyHasOne) {
  for (const char* name :
       {"lru", "lfu", "fifo", "mru", "filo", "priority", "slru", "reuse"}) {
    const auto kind = ParseEvictionPolicy(name);
    ASSERT_EQ(Outcome(kind), "OK");
    EXPECT_EQ(EvictionPolicyName(*kind), name);
  }
}

TEST(PolicyNameTest, CaseDoesNotMatter) {
  EXPECT_EQ(*ParseEvictionPolicy("SLRU"), Kind::kSlru);
}

TEST(PolicyNameTest, AnUnknownOneListsTheChoices) {
  const auto kind = ParseEvictionPolicy("random");
  EXPECT_EQ(Outcome(kind), "INVALID_FIELD");
  EXPECT_THAT(kind.status().message(), HasSubstr("'random'"));
  EXPECT_THAT(kind.status().message(),
              HasSubstr("lru, lfu, fifo, mru, filo, priority, slru, reuse"));
}

}  // namespace
}  // namespace pando
