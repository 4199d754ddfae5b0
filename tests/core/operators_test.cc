// Tests of PrefixCache's answers to operators.

#include <optional>
#include <string>
#include <vector>

#include "tests/core/cache_fixture.h"

namespace pando {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;

class OperatorsTest : public CacheFixture {
 protected:
  static absl::Time At(int seconds) {
    return absl::UnixEpoch() + absl::Seconds(seconds);
  }
  void SetTime(int seconds) {
    cache_.ExpireSessions(At(seconds), absl::ZeroDuration());
  }

  MatchExplanation Explain(std::string_view letters, uint32_t tail = 0,
                           const NamespaceKey& ns = kNoNamespace) {
    return cache_.ExplainMatch(ns, Spell(letters, tail));
  }
};

// A step of a flush may end in the middle of a chain of nodes.
TEST(FlushTest, AChainOfManyNodesIsEvictedWhole) {
  constexpr uint32_t kPages = 1'000;
  PrefixCache cache({.page_tokens = 1, .capacity_pages = kPages + 1});
  const SessionId session(1);
  cache.OpenSession(session, "worker");
  const auto pages = cache.Allocate({session, kNoNamespace, kPages})->pages;
  PrefixHandle end;
  for (uint32_t i = 0; i < kPages; ++i) {
    end = cache
              .Insert({.session = session,
                       .ns = kNoNamespace,
                       .tokens = {{i}},
                       .pages = {{pages[i]}},
                       .after = end})
              ->handle;
  }
  ASSERT_EQ(cache.Stats().nodes, kPages);
  EXPECT_EQ(cache.Flush().evicted_pages, kPages);
  EXPECT_EQ(cache.Stats().pages.free, kPages);
}

using ListNamespacesTest = OperatorsTest;
using ListSessionsTest = OperatorsTest;
using ListLocksTest = OperatorsTest;
using ReleaseLocksTest = OperatorsTest;
using ExplainMatchTest = OperatorsTest;
using DumpTreeTest = OperatorsTest;

TEST_F(ListNamespacesTest, TheLargestComesFirst) {
  Publish("a", {"small", std::nullopt});
  Publish("abc", {std::nullopt, "secret"});
  Lock("");
  const NamespaceList list = cache_.ListNamespaces(10);
  EXPECT_EQ(list.total, 3u);
  ASSERT_THAT(list.namespaces, SizeIs(3));
  EXPECT_EQ(list.namespaces[0].extra_key, std::nullopt);
  EXPECT_TRUE(list.namespaces[0].has_cache_salt);
  EXPECT_EQ(list.namespaces[0].evictable_pages, 3u);
  EXPECT_EQ(list.namespaces[0].nodes, 1u);
  EXPECT_EQ(list.namespaces[1].extra_key, "small");
  EXPECT_FALSE(list.namespaces[1].has_cache_salt);
  EXPECT_EQ(list.namespaces[2].nodes, 0u);
}

TEST_F(ListNamespacesTest, TheLimitCutsOffTheSmallest) {
  Publish("a", {"small", std::nullopt});
  Publish("ab", {"large", std::nullopt});
  const NamespaceList list = cache_.ListNamespaces(1);
  EXPECT_EQ(list.total, 2u);
  ASSERT_THAT(list.namespaces, SizeIs(1));
  EXPECT_EQ(list.namespaces[0].extra_key, "large");
}

TEST_F(ListNamespacesTest, ProtectedPagesAreToldApart) {
  Publish("abc");
  Lock("ab");
  const NamespaceInfo info = cache_.ListNamespaces(1).namespaces.at(0);
  EXPECT_EQ(info.protected_pages, 2u);
  EXPECT_EQ(info.evictable_pages, 1u);
}

TEST_F(ListSessionsTest, TheOldestComesFirstWithWhatItHoldsAndItsAge) {
  Publish("ab");
  SetTime(4);
  const SessionId other = OpenSession();
  Lock(other, "a");
  Lock(other, "ab");
  Allocate(other, 3);
  Attach(other, 1);
  SetTime(10);
  const SessionList list = cache_.ListSessions(10);
  EXPECT_EQ(list.total, 2u);
  ASSERT_THAT(list.sessions, SizeIs(2));
  const SessionInfo& first = list.sessions[0];
  const SessionInfo& second = list.sessions[1];
  EXPECT_EQ(first.number, SessionNumber(1));
  EXPECT_EQ(first.client_name, "first");
  EXPECT_EQ(first.age, absl::Seconds(10));
  EXPECT_EQ(first.locks, 0u);
  EXPECT_FALSE(first.is_attached);
  EXPECT_EQ(second.number, SessionNumber(2));
  EXPECT_EQ(second.client_name, "another");
  EXPECT_EQ(second.age, absl::Seconds(6));
  EXPECT_EQ(second.locks, 2u);
  EXPECT_EQ(second.reserved_pages, 3u);
  EXPECT_TRUE(second.is_attached);
}

TEST_F(ListSessionsTest, TheLimitCutsOffTheYoungest) {
  OpenSession();
  const SessionList list = cache_.ListSessions(1);
  EXPECT_EQ(list.total, 2u);
  ASSERT_THAT(list.sessions, SizeIs(1));
  EXPECT_EQ(list.sessions[0].number, SessionNumber(1));
}

TEST_F(ListSessionsTest, ASessionWhoseStreamBrokeIsListedUntilItIsLost) {
  const SessionId other = OpenSession();
  cache_.SuspendSession(other, At(5));
  SetTime(4);
  EXPECT_FALSE(cache_.ListSessions(9).sessions.at(1).is_connected);
  ASSERT_TRUE(cache_.ResumeSession(other).ok());
  EXPECT_TRUE(cache_.ListSessions(9).sessions.at(1).is_connected);
  cache_.SuspendSession(other, At(6));
  SetTime(6);
  EXPECT_EQ(cache_.ListSessions(9).total, 1u);
}

TEST_F(ListLocksTest, TheOldestComesFirstWithItsOwnerAndAge) {
  Publish("abc");
  SetTime(1);
  Lock(OpenSession(), "ab");
  SetTime(4);
  Lock("abc");
  SetTime(10);
  const LockList list = cache_.ListLocks(10, std::nullopt);
  EXPECT_EQ(list.total, 2u);
  ASSERT_THAT(list.locks, SizeIs(2));
  EXPECT_EQ(list.locks[0].session, SessionNumber(2));
  EXPECT_EQ(list.locks[0].client_name, "another");
  EXPECT_EQ(list.locks[0].locked_tokens, 2 * kPageTokens);
  EXPECT_EQ(list.locks[0].age, absl::Seconds(9));
  EXPECT_EQ(list.locks[1].session, SessionNumber(1));
  EXPECT_EQ(list.locks[1].age, absl::Seconds(6));
  EXPECT_EQ(list.locks[1].ns, list.locks[0].ns);
}

TEST_F(ListLocksTest, CanBeLimitedAndOfOneSession) {
  Publish("abc");
  const SessionId other = OpenSession();
  Lock("a");
  Lock("ab");
  Lock(other, "abc");
  const LockList limited = cache_.ListLocks(1, SessionNumber(1));
  EXPECT_EQ(limited.total, 2u);
  EXPECT_THAT(limited.locks, SizeIs(1));
  EXPECT_EQ(cache_.ListLocks(9, SessionNumber(2)).total, 1u);
  EXPECT_EQ(cache_.ListLocks(9, SessionNumber(3)).total, 0u);
}

TEST_F(ReleaseLocksTest, TakesAllLocksOfOneSessionAndNothingElse) {
  Publish("abc");
  const SessionId other = OpenSession();
  const LockId kept = Lock("a");
  Lock(other, "ab");
  Lock(other, "abc");
  const auto reserved = Allocate(other, 2);
  EXPECT_EQ(cache_.ReleaseLocks(SessionNumber(2)).value(), 2u);
  EXPECT_EQ(Counts().protected_, 1u);
  EXPECT_EQ(Counts().reserved, 2u);
  EXPECT_EQ(Outcome(cache_.CheckSession(other)), "OK");
  EXPECT_EQ(Outcome(cache_.Free(other, reserved)), "OK");
  EXPECT_EQ(Outcome(Unlock(kept)), "OK");
}

TEST_F(ReleaseLocksTest, TheWorkerFindsItsLocksUnknown) {
  Publish("a");
  const LockId lock = Lock("a");
  EXPECT_EQ(cache_.ReleaseLocks(SessionNumber(1)).value(), 1u);
  EXPECT_EQ(Outcome(Unlock(lock)), "LOCK_UNKNOWN");
  EXPECT_EQ(cache_.ReleaseLocks(SessionNumber(1)).value(), 0u);
}

TEST_F(ReleaseLocksTest, ASessionThatIsNotOpenIsAnError) {
  EXPECT_EQ(Outcome(cache_.ReleaseLocks(SessionNumber(7))), "SESSION_LOST");
}

TEST_F(ReleaseLocksTest, WhatTheSessionWasComputingIsGivenUp) {
  ASSERT_EQ(Outcome(MatchAndLock("ab", 2 * kPageTokens)), "OK");
  EXPECT_TRUE(Explain("ab").is_pending);
  EXPECT_EQ(cache_.ReleaseLocks(SessionNumber(1)).value(), 1u);
  EXPECT_FALSE(Explain("ab").is_pending);
}

TEST_F(ExplainMatchTest, CompleteWhenEveryTokenIsCached) {
  Publish("ab");
  const MatchExplanation result = Explain("ab");
  EXPECT_EQ(result.end, MatchEnd::kComplete);
  EXPECT_EQ(result.matched_tokens, 2 * kPageTokens);
  EXPECT_EQ(Explain("").end, MatchEnd::kComplete);
}

TEST_F(ExplainMatchTest, PageFloorWhenTheRestIsLessThanAPage) {
  Publish("ab");
  EXPECT_EQ(Explain("ab", 1).end, MatchEnd::kPageFloor);
  EXPECT_EQ(Explain("", 3).end, MatchEnd::kPageFloor);
}

TEST_F(ExplainMatchTest, NeverCachedWhereTheCacheEnds) {
  EXPECT_EQ(Explain("a").end, MatchEnd::kNeverCached);
  Publish("ab");
  const MatchExplanation result = Explain("abc");
  EXPECT_EQ(result.end, MatchEnd::kNeverCached);
  EXPECT_EQ(result.matched_tokens, 2 * kPageTokens);
}

TEST_F(ExplainMatchTest, DivergedTellsTheFirstTokenThatDiffersInsideANode) {
  Publish("acd");
  const MatchExplanation result = Explain("acc");  // c, d differ at the end
  EXPECT_EQ(result.end, MatchEnd::kDiverged);
  EXPECT_EQ(result.matched_tokens, 2 * kPageTokens);
  EXPECT_EQ(result.diverged_at, 2 * kPageTokens + 3);
}

TEST_F(ExplainMatchTest, DivergedTellsTheLongestOfSeveralContinuations) {
  Publish("ae");
  Publish("ac");
  EXPECT_EQ(Explain("ad").diverged_at, kPageTokens + 3);
  EXPECT_EQ(Explain("az").diverged_at, kPageTokens);
  EXPECT_EQ(Explain("az").end, MatchEnd::kDiverged);
}

TEST_F(ExplainMatchTest, DivergedCountsPairsInABigramNamespace) {
  const NamespaceKey pairs{std::nullopt, std::nullopt, true};
  const std::vector<Token> cached = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  const auto pages = Allocate(2);
  ASSERT_EQ(Outcome(cache_.Insert({.session = session_,
                                   .ns = pairs,
                                   .tokens = cached,
                                   .pages = pages})),
            "OK");
  const std::vector<Token> prompt = {1, 2, 3, 4, 5, 6, 7, 0, 0};
  const MatchExplanation result = cache_.ExplainMatch(pairs, prompt);
  EXPECT_EQ(result.end, MatchEnd::kDiverged);
  EXPECT_EQ(result.matched_tokens, kPageTokens);
  EXPECT_EQ(result.diverged_at, kPageTokens + 2);  // (5, 6), (6, 7) agree
  EXPECT_EQ(cache_.ExplainMatch(pairs, cached).end, MatchEnd::kComplete);
  EXPECT_EQ(cache_.ExplainMatch(pairs, std::vector<Token>{1}).end,
            MatchEnd::kPageFloor);
}

TEST_F(ExplainMatchTest, EvictedTellsWhyAndWhen) {
  Publish("abc");
  SetTime(5);
  ASSERT_EQ(cache_.Evict(2), 2u);
  SetTime(8);
  const MatchExplanation result = Explain("abc");
  EXPECT_EQ(result.end, MatchEnd::kEvicted);
  EXPECT_EQ(result.matched_tokens, kPageTokens);
  ASSERT_TRUE(result.eviction.has_value());
  EXPECT_EQ(result.eviction->reason, EvictionReason::kRequest);
  EXPECT_EQ(result.eviction->age, absl::Seconds(3));
}

TEST_F(ExplainMatchTest, EvictedIsKnownWhenTheWholeNamespaceIsGone) {
  Publish("abc", {"lora", std::nullopt});
  cache_.Flush();
  const MatchExplanation result = Explain("abc", 0, {"lora", std::nullopt});
  EXPECT_EQ(result.end, MatchEnd::kEvicted);
  EXPECT_EQ(result.eviction->reason, EvictionReason::kFlush);
  EXPECT_EQ(Explain("abc").end, MatchEnd::kNeverCached);
}

TEST_F(ExplainMatchTest, EvictedIsToldBeforeDiverged) {
  Publish("ab");
  Publish("ac");
  Touch("ac");
  ASSERT_EQ(cache_.Evict(1), 1u);
  EXPECT_EQ(Explain("ab").end, MatchEnd::kEvicted);
  EXPECT_EQ(Explain("ad").end, MatchEnd::kDiverged);
}

TEST_F(ExplainMatchTest, ChangesNothing) {
  Publish("ab");
  Publish("cd");
  const auto before = Snapshot();
  Explain("abx");
  EXPECT_EQ(Snapshot(), before);
  ASSERT_EQ(cache_.Evict(2), 2u);
  EXPECT_EQ(CachedPages("ab"), 0u);
}

TEST_F(ExplainMatchTest, NamesNamespacesThatHaveMore) {
  Publish("a");
  Publish("ab", {"more", std::nullopt});
  Publish("a", {"same", std::nullopt});
  const auto number = cache_.ListNamespaces(1).namespaces.at(0).number;
  EXPECT_THAT(Explain("ab").longer_in_namespaces, ElementsAre(number));
  EXPECT_THAT(Explain("ab", 0, {"more", std::nullopt}).longer_in_namespaces,
              IsEmpty());
}

TEST_F(ExplainMatchTest, NamesSixteenNamespacesThatHaveMoreAtMost) {
  PrefixCache cache({kPageTokens, 40});
  cache.OpenSession(session_, "many tenants");
  for (int tenant = 0; tenant < 17; ++tenant) {
    const NamespaceKey ns{std::to_string(tenant), std::nullopt};
    const auto pages = cache.Allocate({session_, ns, 1});
    ASSERT_EQ(Outcome(cache.Insert({.session = session_,
                                    .ns = ns,
                                    .tokens = Spell("a"),
                                    .pages = pages->pages})),
              "OK");
  }
  const auto result = cache.ExplainMatch(kNoNamespace, Spell("a"));
  EXPECT_EQ(result.longer_in_namespaces.size(), 16u);
}

TEST_F(ExplainMatchTest, LooksAtTenThousandContinuationsAtMost) {
  constexpr Token kChildren = 10'001;
  PrefixCache cache({kPageTokens, kChildren + 1});
  cache.OpenSession(session_, "many children");
  const auto pages = cache.Allocate({session_, kNoNamespace, kChildren});
  for (Token child = 0; child < kChildren; ++child) {
    const std::vector<Token> page = {child, 1, 1, 1};
    ASSERT_EQ(Outcome(cache.Insert({.session = session_,
                                    .ns = kNoNamespace,
                                    .tokens = page,
                                    .pages = {&pages->pages[child], 1}})),
              "OK");
  }
  const auto diverged_at = [&](Token child) {
    const std::vector<Token> prompt = {child, 1, 1, 2};
    return cache.ExplainMatch(kNoNamespace, prompt).diverged_at;
  };
  EXPECT_EQ(diverged_at(kChildren - 1), 3u);
  EXPECT_EQ(diverged_at(0), 0u);  // the newest are searched first
}

TEST_F(ExplainMatchTest, NamesNoLocksOfOtherNamespaces) {
  const NamespaceKey other{"other", std::nullopt};
  Publish("a");
  Publish("a", other);
  ASSERT_EQ(Outcome(cache_.Lock({session_, other, Spell("a")})), "OK");
  EXPECT_THAT(Explain("a").locks, IsEmpty());
  EXPECT_EQ(Explain("a", 0, other).locks.size(), 1u);
}

TEST_F(ExplainMatchTest, NamesWhoHoldsLocksOnWhatMatchedAndHowMuch) {
  Publish("abcd");
  Publish("axy");
  SetTime(1);
  const SessionId other = OpenSession();
  Lock(other, "a");
  SetTime(2);
  Lock(other, "abcd");
  SetTime(3);
  Lock(other, "axy");
  Lock(other, "");
  SetTime(4);
  const MatchExplanation result = Explain("abc");
  ASSERT_THAT(result.locks, SizeIs(3));
  EXPECT_EQ(result.locks[0].locked_tokens, kPageTokens);
  EXPECT_EQ(result.locks[0].age, absl::Seconds(3));
  EXPECT_EQ(result.locks[1].locked_tokens, 3 * kPageTokens);
  EXPECT_EQ(result.locks[2].locked_tokens, kPageTokens);
  EXPECT_EQ(result.locks[2].session, SessionNumber(2));
}

TEST_F(ExplainMatchTest, TellsThatTheNextPageIsBeingComputed) {
  Publish("a");
  EXPECT_FALSE(Explain("ab").is_pending);
  ASSERT_EQ(Outcome(MatchAndLock("ab", 2 * kPageTokens)), "OK");
  EXPECT_TRUE(Explain("ab").is_pending);
  EXPECT_FALSE(Explain("ac").is_pending);
}

TEST_F(DumpTreeTest, EachNodeComesAfterItsParent) {
  Publish("abcd", {"first", std::nullopt});
  Publish("xy", {"second", std::nullopt});
  const auto tokens = Spell("ab");
  ASSERT_EQ(Outcome(cache_.Lock(
                {session_, NamespaceKey{"first", std::nullopt}, tokens})),
            "OK");
  const TreeDump dump = cache_.DumpTree(10, std::nullopt);
  EXPECT_EQ(dump.omitted, 0u);
  ASSERT_THAT(dump.nodes, SizeIs(3));
  const TreeNodeInfo& front = dump.nodes[0];
  EXPECT_EQ(front.parent, 0u);
  EXPECT_NE(front.node, 0u);
  EXPECT_EQ(front.depth, 0u);
  EXPECT_EQ(front.begin_token, 0u);
  EXPECT_EQ(front.tokens, 2 * kPageTokens);
  EXPECT_EQ(front.pages, 2u);
  EXPECT_EQ(front.locks, 1u);
  EXPECT_EQ(front.hits, 1u);
  EXPECT_EQ(front.age_accesses, 0u);
  const TreeNodeInfo& back = dump.nodes[1];
  EXPECT_EQ(back.parent, front.node);
  EXPECT_EQ(back.depth, 1u);
  EXPECT_EQ(back.begin_token, 2 * kPageTokens);
  EXPECT_EQ(back.locks, 0u);
  EXPECT_GT(back.age_accesses, 0u);
  EXPECT_EQ(back.ns, front.ns);
  EXPECT_NE(dump.nodes[2].ns, front.ns);
  EXPECT_EQ(dump.nodes[2].depth, 0u);
}

TEST_F(DumpTreeTest, LocksAreThoseOnANodeAndOnAllNodesBelow) {
  Publish("abcd");
  Publish("abx");
  for (const char* prompt : {"ab", "ab", "abcd", "abcd", "abx", "a"}) {
    Lock(prompt);
  }
  std::vector<uint32_t> locks;
  for (const TreeNodeInfo& node : cache_.DumpTree(10, std::nullopt).nodes) {
    locks.push_back(node.locks);
  }
  EXPECT_THAT(locks, UnorderedElementsAre(6, 5, 2, 1));
}

TEST_F(DumpTreeTest, DepthCountsTheNodesAbove) {
  Publish("a");
  Publish("ab");
  Publish("abc");
  Publish("ax");
  std::vector<uint32_t> depths;
  for (const TreeNodeInfo& node : cache_.DumpTree(10, std::nullopt).nodes) {
    depths.push_back(node.depth);
  }
  EXPECT_THAT(depths, ElementsAre(0, 1, 1, 2));
}

TEST_F(DumpTreeTest, TellsHowManyNodesTheLimitCutOff) {
  Publish("a");
  Publish("b");
  Publish("c", {"other", std::nullopt});
  const TreeDump dump = cache_.DumpTree(1, std::nullopt);
  EXPECT_THAT(dump.nodes, SizeIs(1));
  EXPECT_EQ(dump.omitted, 2u);
}

TEST_F(DumpTreeTest, CanBeOfOneNamespace) {
  Publish("a");
  Publish("bc", {"other", std::nullopt});
  const auto number = cache_.ListNamespaces(1).namespaces.at(0).number;
  const TreeDump dump = cache_.DumpTree(10, number);
  ASSERT_THAT(dump.nodes, SizeIs(1));
  EXPECT_EQ(dump.nodes[0].ns, number);
  EXPECT_EQ(dump.omitted, 0u);
  EXPECT_THAT(cache_.DumpTree(10, NamespaceNumber(99)).nodes, IsEmpty());
}

}  // namespace
}  // namespace pando
