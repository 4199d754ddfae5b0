#include "tests/core/cache_fixture.h"

namespace pando {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using EvictionTest = CacheFixture;

TEST_F(EvictionTest, FreesTheLeastRecentlyUsedFirst) {
  Publish("a");
  Publish("b");
  Publish("c");
  Touch("a");
  EXPECT_EQ(cache_.Evict(1), 1u);
  EXPECT_EQ(CachedPages("b"), 0u);
  EXPECT_EQ(cache_.Evict(1), 1u);
  EXPECT_EQ(CachedPages("c"), 0u);
  EXPECT_EQ(CachedPages("a"), 1u);
}

TEST_F(EvictionTest, TrimsALeafFromItsTailPageByPage) {
  const auto pages = Publish("abcd");
  EXPECT_EQ(cache_.Evict(1), 1u);
  EXPECT_THAT(PagesOf("abcd"), ElementsAre(pages[0], pages[1], pages[2]));
  EXPECT_EQ(cache_.Evict(2), 2u);
  EXPECT_THAT(PagesOf("abcd"), ElementsAre(pages[0]));
  EXPECT_EQ(cache_.Evict(1), 1u);
  EXPECT_EQ(CachedPages("abcd"), 0u);
  EXPECT_EQ(Counts().free, kUsable);
}

TEST_F(EvictionTest, FreesExactlyWhatWasAskedAcrossLeaves) {
  Publish("abc");
  Publish("def");
  EXPECT_EQ(cache_.Evict(4), 4u);
  EXPECT_EQ(CachedPages("abc"), 0u);
  EXPECT_EQ(CachedPages("def"), 2u);
  EXPECT_EQ(Counts().free, kUsable - 2);
}

TEST_F(EvictionTest, TakesLeavesBeforeTheirTrunk) {
  const auto trunk = Publish("ab");
  ASSERT_EQ(Outcome(Insert("abc", Concat(trunk, Allocate(1)))), "OK");
  ASSERT_EQ(Outcome(Insert("abd", Concat(trunk, Allocate(1)))), "OK");
  Publish("e");
  EXPECT_EQ(cache_.Evict(2), 2u);
  EXPECT_EQ(CachedPages("abc"), 2u);
  EXPECT_EQ(CachedPages("abd"), 2u);
  EXPECT_EQ(CachedPages("e"), 1u);
}

TEST_F(EvictionTest, NeverTakesALockedPageAndReturnsWhatItCould) {
  Publish("abcd");
  Lock("ab");
  EXPECT_EQ(cache_.Evict(100), 2u);
  EXPECT_EQ(CachedPages("abcd"), 2u);
  EXPECT_EQ(cache_.Evict(100), 0u);
}

TEST_F(EvictionTest, OfAnEmptyCacheFreesNothing) {
  EXPECT_EQ(cache_.Evict(0), 0u);
  EXPECT_EQ(cache_.Evict(5), 0u);
}

TEST_F(EvictionTest, AMatchRefreshesOnlyTheNodesItCoversWhole) {
  Publish("abc");
  Publish("d");
  Touch("ab");  // only a part of the node
  EXPECT_EQ(cache_.Evict(3), 3u);
  EXPECT_EQ(CachedPages("abc"), 0u);
  EXPECT_EQ(CachedPages("d"), 1u);
}

TEST_F(EvictionTest, AMatchThatDoesNotTouchLeavesTheOrderAlone) {
  Publish("a");
  Publish("b");
  PagesOf("a");
  EXPECT_EQ(cache_.Evict(1), 1u);
  EXPECT_EQ(CachedPages("a"), 0u);
}

TEST_F(EvictionTest, AMatchWithALockRefreshesWhatItMatched) {
  Publish("abc");
  Publish("d");
  ASSERT_EQ(Outcome(Unlock(MatchAndLock("ab")->lock)), "OK");
  EXPECT_EQ(cache_.Evict(2), 2u);
  EXPECT_EQ(CachedPages("abc"), 2u);
  EXPECT_EQ(CachedPages("d"), 0u);
}

TEST_F(EvictionTest, AnInsertOfWhatExistsRefreshesIt) {
  const auto pages = Publish("a");
  Publish("b");
  ASSERT_EQ(Outcome(Insert("a", pages)), "OK");
  EXPECT_EQ(cache_.Evict(1), 1u);
  EXPECT_EQ(CachedPages("a"), 1u);
}

TEST_F(EvictionTest, WhatIsUnlockedCountsAsUsedJustNow) {
  Publish("a");
  const LockId lock = Lock("a");
  Publish("b");
  ASSERT_EQ(Outcome(Unlock(lock)), "OK");
  EXPECT_EQ(cache_.Evict(1), 1u);
  EXPECT_EQ(CachedPages("b"), 0u);
}

TEST_F(EvictionTest, WhatIsLeftOfATrimmedLeafCanGrowAgain) {
  const auto pages = Publish("abcd");
  EXPECT_EQ(cache_.Evict(2), 2u);
  const auto more = Allocate(2);
  ASSERT_EQ(Outcome(Insert("abce", {pages[0], pages[1], more[0], more[1]})),
            "OK");
  EXPECT_EQ(CachedPages("abce"), 4u);
  EXPECT_EQ(CachedPages("abcd"), 3u);
}

TEST_F(EvictionTest, FlushEvictsAllThatIsNotLocked) {
  Publish("abcd");
  Publish("ef");
  Lock("ab");
  const FlushResult flush = cache_.Flush();
  EXPECT_EQ(flush.evicted_pages, 4u);
  EXPECT_EQ(flush.protected_pages, 2u);
  EXPECT_EQ(Counts().evictable, 0u);
}

TEST_F(EvictionTest, AFlushThatFindsNothingIsNoEvent) {
  cache_.StartEvents();
  std::vector<RawEvent> events;
  cache_.TakeEvents(events);
  Lock("");  // makes the namespace, which stays empty
  cache_.Flush();
  cache_.TakeEvents(events);
  EXPECT_THAT(events, IsEmpty());
}

TEST_F(EvictionTest, ChurnIsWhatComesAndGoesAndNotWhatWasThere) {
  Publish("ab");
  std::vector<RawEvent> churn;
  cache_.TakeChurn(churn);
  ASSERT_EQ(churn.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<AllCleared>(churn[0]));

  const auto pages = Publish("abc");  // the cache has "ab" already
  ASSERT_EQ(cache_.Evict(1), 1u);
  cache_.TakeChurn(churn);
  ASSERT_EQ(churn.size(), 2u);
  EXPECT_THAT(std::get<PagesStored>(churn[0]).pages(), ElementsAre(pages[2]));
  EXPECT_THAT(std::get<PagesRemoved>(churn[1]).pages, ElementsAre(pages[2]));
}

TEST_F(EvictionTest, AFlushTakesDeepAndWideTreesApart) {
  Publish("abc");
  const LockId lock = Lock("ab");
  Publish("abde");
  Publish("abdf");
  Publish("g");
  const FlushResult flush = cache_.Flush();
  EXPECT_EQ(flush.evicted_pages, 5u);
  EXPECT_EQ(flush.protected_pages, 2u);
  ASSERT_EQ(Outcome(Unlock(lock)), "OK");
  EXPECT_EQ(cache_.Flush().evicted_pages, 2u);
  EXPECT_EQ(cache_.Stats().namespaces, 0u);
}

TEST_F(EvictionTest, InManyStepsFreesAllThatWasAsked) {
  constexpr uint32_t kPages = 1000;  // more than one hold of the mutex can free
  PrefixCache cache({1, kPages + 1});
  cache.OpenSession(session_, "many");
  const auto pages =
      cache
          .Allocate({.session = session_, .ns = kNoNamespace, .pages = kPages})
          ->pages;
  const std::vector<Token> tokens(kPages, 7);
  ASSERT_EQ(Outcome(cache.Insert({.session = session_,
                                  .ns = kNoNamespace,
                                  .tokens = tokens,
                                  .pages = pages})),
            "OK");
  EXPECT_EQ(cache.Evict(700), 700u);
  EXPECT_EQ(cache.Stats().pages.evictable, 300u);
  EXPECT_EQ(cache.Stats().counters.evicted_pages_on_request, 700u);
  EXPECT_EQ(cache.Evict(700), 300u);
  EXPECT_EQ(cache.Stats().nodes, 0u);
}

}  // namespace
}  // namespace pando
