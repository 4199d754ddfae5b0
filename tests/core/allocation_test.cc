#include <algorithm>
#include <set>

#include "tests/core/cache_fixture.h"

namespace pando {
namespace {

using ::testing::IsEmpty;

using AllocationTest = CacheFixture;

TEST_F(AllocationTest, GivesDistinctPagesAndNeverThePaddingPage) {
  const auto pages = Allocate(kUsable);
  const std::set<PageId> distinct(pages.begin(), pages.end());
  EXPECT_EQ(distinct.size(), kUsable);
  EXPECT_FALSE(distinct.contains(kPaddingPage));
  EXPECT_LT(distinct.rbegin()->value(), kCapacity);
  EXPECT_EQ(Counts().reserved, kUsable);
  EXPECT_EQ(Counts().padding, 1u);
}

TEST_F(AllocationTest, OfNoPagesGivesNone) {
  EXPECT_THAT(Allocate(0), IsEmpty());
}

TEST_F(AllocationTest, EvictsOnDemandAndNoMoreThanNeeded) {
  Publish("abcdefghij");
  EXPECT_EQ(Allocate(8).size(), 8u);
  EXPECT_EQ(CachedPages("abcdefghij"), 7u);
  EXPECT_EQ(cache_.Stats().counters.evicted_pages_for_allocation, 3u);
}

TEST_F(AllocationTest, DoesNotEvictWhileFreePagesLast) {
  Publish("abcde");
  Allocate(10);
  EXPECT_EQ(CachedPages("abcde"), 5u);
  EXPECT_EQ(Counts().free, 0u);
}

TEST_F(AllocationTest, BeyondWhatCanBeEvictedFailsAndEvictsNothing) {
  Publish("abcd");
  Lock("ab");
  const auto before = Snapshot();
  EXPECT_EQ(Outcome(cache_.Allocate({session_, kNoNamespace, kUsable - 1})),
            "POOL_EXHAUSTED");
  EXPECT_EQ(Outcome(cache_.Allocate({session_, kNoNamespace, UINT32_MAX})),
            "POOL_EXHAUSTED");
  EXPECT_EQ(Snapshot(), before);
  EXPECT_EQ(cache_.Stats().counters.allocation_failures, 2u);
  EXPECT_EQ(Allocate(kUsable - 2).size(), kUsable - 2);
}

TEST_F(AllocationTest, WithAMinimumGivesAsManyAsThereIsRoomFor) {
  Publish("abcd");
  Lock("ab");
  const auto most = cache_.Allocate({.session = session_,
                                     .ns = kNoNamespace,
                                     .pages = UINT32_MAX,
                                     .min_pages = 3});
  ASSERT_EQ(Outcome(most), "OK");
  EXPECT_EQ(most->pages.size(), kUsable - 2);
  EXPECT_EQ(most->room, (PageRoom{.free = 0, .evictable = 0}));
  EXPECT_EQ(cache_.Stats().counters.allocation_failures, 0u);
}

TEST_F(AllocationTest, WithAMinimumNeverGivesMoreThanWasAskedFor) {
  const auto some = cache_.Allocate(
      {.session = session_, .ns = kNoNamespace, .pages = 4, .min_pages = 1});
  ASSERT_EQ(Outcome(some), "OK");
  EXPECT_EQ(some->pages.size(), 4u);
  EXPECT_EQ(some->room, (PageRoom{.free = kUsable - 4, .evictable = 0}));
}

TEST_F(AllocationTest, WithoutRoomForTheMinimumFailsAndEvictsNothing) {
  Publish("abcd");
  Lock("ab");
  const auto before = Snapshot();
  EXPECT_EQ(Outcome(cache_.Allocate({.session = session_,
                                     .ns = kNoNamespace,
                                     .pages = UINT32_MAX,
                                     .min_pages = kUsable - 1})),
            "POOL_EXHAUSTED");
  EXPECT_EQ(Snapshot(), before);
}

TEST_F(AllocationTest, OfAnyNumberNeverFailsForWantOfRoom) {
  Allocate(kUsable);
  const auto none = cache_.Allocate(
      {.session = session_, .ns = kNoNamespace, .pages = 5, .min_pages = 0});
  ASSERT_EQ(Outcome(none), "OK");
  EXPECT_THAT(none->pages, IsEmpty());
}

TEST_F(AllocationTest, AMinimumOverTheNumberItselfIsAnError) {
  EXPECT_EQ(Outcome(cache_.Allocate({.session = session_,
                                     .ns = kNoNamespace,
                                     .pages = 2,
                                     .min_pages = 3})),
            "INVALID_FIELD");
}

TEST_F(AllocationTest, ARepeatTellsTheRoomOfNow) {
  const AllocateRequest request{.session = session_,
                                .ns = kNoNamespace,
                                .pages = 2,
                                .request_id = RequestId(7)};
  const auto first = cache_.Allocate(request);
  ASSERT_EQ(Outcome(first), "OK");
  Publish("abc");
  const auto second = cache_.Allocate(request);
  ASSERT_EQ(Outcome(second), "OK");
  EXPECT_EQ(second->pages, first->pages);
  EXPECT_EQ(second->room, (PageRoom{.free = kUsable - 5, .evictable = 3}));
}

TEST_F(AllocationTest, GivesBackWhatWasFreed) {
  const auto pages = Allocate(kUsable);
  ASSERT_EQ(Outcome(cache_.Free(session_, std::vector{pages[3], pages[7]})),
            "OK");
  EXPECT_EQ(Counts().free, 2u);
  auto again = Allocate(2);
  std::sort(again.begin(), again.end());
  std::vector expected = {pages[3], pages[7]};
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(again, expected);
}

TEST_F(AllocationTest, FreeOfAnEmptyListIsNoError) {
  EXPECT_EQ(Outcome(cache_.Free(session_, {})), "OK");
}

TEST_F(AllocationTest, ThePoolIsWholeAfterFillingAndDrainingItManyTimes) {
  for (int round = 0; round < 50; ++round) {
    const auto kept = Allocate(5);
    const auto returned = Allocate(5);
    ASSERT_EQ(Outcome(Insert("abcde", kept)), "OK");
    ASSERT_EQ(Outcome(cache_.Free(session_, returned)), "OK");
    cache_.Flush();
    ASSERT_EQ(Counts().free, kUsable);
  }
}

}  // namespace
}  // namespace pando
