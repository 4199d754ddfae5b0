// Tests of the caps and floors of namespace classes, and of the watermark.

#include <string>
#include <vector>

#include "tests/core/cache_fixture.h"

namespace pando {
namespace {

using ::testing::IsEmpty;

const NamespaceKey kCapped{"capped", std::nullopt};
const NamespaceKey kSure{"sure/1", std::nullopt};
const NamespaceKey kOther{"other", std::nullopt};

// A test with ten pages. One class may have at most four pages. Another one
// keeps at least three.
class QuotaTest : public testing::Test {
 protected:
  QuotaTest() { cache_.OpenSession(session_, "one"); }
  void TearDown() override { EXPECT_THAT(cache_.CheckInvariants(), IsEmpty()); }

  absl::StatusOr<AllocateResult> Allocate(const NamespaceKey& ns,
                                          uint32_t pages) {
    return cache_.Allocate({.session = session_, .ns = ns, .pages = pages});
  }
  std::vector<PageId> Publish(const NamespaceKey& ns,
                              const std::vector<Token>& tokens) {
    const auto pages = Allocate(ns, static_cast<uint32_t>(tokens.size()));
    EXPECT_EQ(Outcome(pages), "OK");
    EXPECT_EQ(Outcome(Insert(ns, tokens, pages->pages)), "OK");
    return pages->pages;
  }
  absl::StatusOr<InsertResult> Insert(const NamespaceKey& ns,
                                      const std::vector<Token>& tokens,
                                      const std::vector<PageId>& pages) {
    return cache_.Insert(
        {.session = session_, .ns = ns, .tokens = tokens, .pages = pages});
  }
  LockId Lock(const NamespaceKey& ns, const std::vector<Token>& tokens) {
    return cache_.Lock({.session = session_, .ns = ns, .tokens = tokens})->lock;
  }
  QuotaClassStats Class(const std::string& name) {
    for (const QuotaClassStats& c : cache_.Stats().quota_classes) {
      if (c.name == name) return c;
    }
    ADD_FAILURE() << "no class " << name;
    return {};
  }
  CacheCounters Counters() { return cache_.Stats().counters; }

  const SessionId session_{1};
  PrefixCache cache_{
      {.page_tokens = 1,
       .capacity_pages = 11,
       .quota_classes = {
           {.name = "capped",
            .pattern = "capped",
            .floor_pages = 0,
            .cap_pages = 4},
           {.name = "sure", .pattern = "sure/*", .floor_pages = 3}}}};
};

TEST_F(QuotaTest, ReservedAndCachedPagesCountForTheirClass) {
  Publish(kCapped, {1, 2});
  ASSERT_EQ(Outcome(Allocate(kCapped, 1)), "OK");
  EXPECT_EQ(Class("capped").cached_pages, 2u);
  EXPECT_EQ(Class("capped").reserved_pages, 1u);
  EXPECT_EQ(Class("capped").cap_pages, 4u);
  EXPECT_EQ(Class("").cached_pages, 0u);
  EXPECT_EQ(Class("sure").floor_pages, 3u);
}

TEST_F(QuotaTest, TheFirstClassThatMatchesCounts) {
  PrefixCache cache({.page_tokens = 1,
                     .capacity_pages = 11,
                     .quota_classes = {{.name = "a", .pattern = "a*"},
                                       {.name = "all", .pattern = "*"}}});
  cache.OpenSession(session_, "one");
  for (const NamespaceKey& ns :
       {NamespaceKey{"ab", std::nullopt}, NamespaceKey{"b", std::nullopt},
        NamespaceKey{}}) {
    ASSERT_EQ(
        Outcome(cache.Allocate({.session = session_, .ns = ns, .pages = 1})),
        "OK");
  }
  const auto classes = cache.Stats().quota_classes;
  ASSERT_EQ(classes.size(), 3u);
  EXPECT_EQ(classes[0].reserved_pages, 1u);
  EXPECT_EQ(classes[1].reserved_pages, 2u);
  EXPECT_EQ(classes[2].reserved_pages, 0u);
}

TEST_F(QuotaTest, OverTheCapIsRefusedAndChangesNothing) {
  ASSERT_EQ(Outcome(Allocate(kCapped, 3)), "OK");
  Publish(kOther, {1, 2});
  const PageCounts before = cache_.Stats().pages;
  EXPECT_EQ(Outcome(Allocate(kCapped, 2)), "QUOTA_EXCEEDED");
  EXPECT_EQ(cache_.Stats().pages.free, before.free);
  EXPECT_EQ(cache_.Stats().pages.evictable, before.evictable);
  EXPECT_EQ(Counters().quota_rejections, 1u);
  EXPECT_EQ(Counters().allocation_failures, 0u);
}

TEST_F(QuotaTest, AtTheCapAClassMakesRoomWithItsOwnPages) {
  Publish(kOther, {1, 2});  // older, and not evicted
  Publish(kCapped, {1, 2, 3, 4});
  ASSERT_EQ(Outcome(Allocate(kCapped, 3)), "OK");
  EXPECT_EQ(Class("capped").cached_pages, 1u);
  EXPECT_EQ(Class("capped").reserved_pages, 3u);
  EXPECT_EQ(Class("").cached_pages, 2u);
  EXPECT_EQ(Counters().evicted_pages_for_quota, 3u);
  EXPECT_EQ(Counters().evicted_pages_for_allocation, 0u);
}

TEST_F(QuotaTest, AnAllocationWithAMinimumStaysWithinTheCap) {
  Publish(kCapped, {1, 2, 3});
  Lock(kCapped, {1});
  const auto some = cache_.Allocate(
      {.session = session_, .ns = kCapped, .pages = 9, .min_pages = 1});
  ASSERT_EQ(Outcome(some), "OK");
  EXPECT_EQ(some->pages.size(), 3u);
  EXPECT_EQ(Counters().quota_rejections, 0u);
}

TEST_F(QuotaTest, WhatIsLockedAtTheCapIsNoRoom) {
  Publish(kCapped, {1, 2, 3, 4});
  Lock(kCapped, {1, 2, 3});
  EXPECT_EQ(Outcome(Allocate(kCapped, 2)), "QUOTA_EXCEEDED");
  EXPECT_EQ(Outcome(Allocate(kCapped, 1)), "OK");
}

TEST_F(QuotaTest, AnAdmissionOverTheCapFailsWhole) {
  Publish(kCapped, {1, 2});
  const std::vector<Token> tokens = {1, 2, 3, 4, 5};
  const auto match = cache_.Match({.session = session_,
                                   .ns = kCapped,
                                   .tokens = tokens,
                                   .lock = true,
                                   .reserve_tokens = 5});
  EXPECT_EQ(Outcome(match), "QUOTA_EXCEEDED");
  EXPECT_EQ(cache_.Stats().locks, 0u);
  EXPECT_EQ(Class("capped").cached_pages, 2u);
}

TEST_F(QuotaTest, OthersNeverEvictBelowAFloor) {
  Publish(kSure, {1, 2, 3, 4});
  Publish(kOther, {1, 2});
  ASSERT_EQ(Outcome(Allocate(kOther, 7)), "OK");
  EXPECT_EQ(Class("sure").cached_pages, 3u);
  EXPECT_EQ(Outcome(Allocate(kOther, 1)), "POOL_EXHAUSTED");
  EXPECT_EQ(Class("sure").cached_pages, 3u);
}

TEST_F(QuotaTest, ReservedPagesDoNotCountForAFloor) {
  Publish(kSure, {1, 2, 3});
  ASSERT_EQ(Outcome(Allocate(kSure, 3)), "OK");
  EXPECT_EQ(Outcome(Allocate(kOther, 5)), "POOL_EXHAUSTED");
  EXPECT_EQ(Outcome(Allocate(kOther, 4)), "OK");
  EXPECT_EQ(cache_.Evict(100), 0u);
  EXPECT_EQ(Class("sure").cached_pages, 3u);
}

TEST_F(QuotaTest, AKeyIsComparedBeyondAZeroByte) {
  const std::string capped("capped\0x", 8);
  ASSERT_EQ(Outcome(Allocate({.extra_key = capped, .cache_salt = {}}, 1)),
            "OK");
  EXPECT_EQ(Class("capped").reserved_pages, 0u);
  const std::string sure("sure/\0x", 7);
  ASSERT_EQ(Outcome(Allocate({.extra_key = sure, .cache_salt = {}}, 1)), "OK");
  EXPECT_EQ(Class("sure").reserved_pages, 1u);
}

TEST_F(QuotaTest, AClassMayEvictBelowItsOwnFloor) {
  Publish(kSure, {1, 2, 3});
  ASSERT_EQ(Outcome(Allocate(kOther, 7)), "OK");
  EXPECT_EQ(Outcome(Allocate(kSure, 2)), "OK");
  EXPECT_EQ(Class("sure").cached_pages, 1u);
}

TEST_F(QuotaTest, EvictKeepsFloorsAndFlushDoesNot) {
  Publish(kSure, {1, 2, 3, 4});
  EXPECT_EQ(cache_.Evict(100), 1u);
  EXPECT_EQ(Class("sure").cached_pages, 3u);
  EXPECT_EQ(cache_.Flush().evicted_pages, 3u);
}

TEST_F(QuotaTest, AnInsertIntoAnotherClassKeepsItsCap) {
  const auto pages = Allocate(kOther, 5)->pages;
  EXPECT_EQ(Outcome(Insert(kCapped, {1, 2, 3, 4, 5}, pages)), "QUOTA_EXCEEDED");
  EXPECT_EQ(Class("").reserved_pages, 5u);
  EXPECT_EQ(Outcome(Insert(kCapped, {1, 2, 3, 4},
                           {pages.begin(), pages.begin() + 4})),
            "OK");
  EXPECT_EQ(Class("").reserved_pages, 1u);
  EXPECT_EQ(Class("capped").cached_pages, 4u);
}

TEST_F(QuotaTest, AnInsertOfItsOwnPagesIsNeverOverTheCap) {
  const auto pages = Allocate(kCapped, 4)->pages;
  EXPECT_EQ(Outcome(Insert(kCapped, {1, 2, 3, 4}, pages)), "OK");
}

TEST_F(QuotaTest, WithoutClassesNoneAreShown) {
  PrefixCache cache({1, 11});
  EXPECT_THAT(cache.Stats().quota_classes, IsEmpty());
}

class WatermarkTest : public testing::Test {
 protected:
  WatermarkTest() { cache_.OpenSession(session_, "one"); }

  void Publish(uint32_t pages) {
    const auto allocated =
        cache_
            .Allocate({.session = session_, .ns = kNoNamespace, .pages = pages})
            ->pages;
    const std::vector<Token> tokens(pages, ++last_token_);
    ASSERT_EQ(Outcome(cache_.Insert({.session = session_,
                                     .ns = kNoNamespace,
                                     .tokens = tokens,
                                     .pages = allocated})),
              "OK");
  }
  uint32_t Free() { return cache_.Stats().pages.free; }

  static constexpr uint32_t kPages = 1'000;
  static constexpr uint32_t kLow = 100;
  static constexpr uint32_t kHigh = 500;
  const SessionId session_{1};
  Token last_token_ = 0;
  PrefixCache cache_{{.page_tokens = 1,
                      .capacity_pages = kPages + 1,
                      .low_free_pages = kLow,
                      .high_free_pages = kHigh}};
};

TEST_F(WatermarkTest, AboveTheLowMarkNothingIsEvicted) {
  Publish(kPages - kLow);
  EXPECT_EQ(cache_.EvictToWatermark(), 0u);
}

TEST_F(WatermarkTest, BelowTheLowMarkStepsEvictUntilTheHighOne) {
  Publish(kPages - kLow + 1);
  uint32_t evicted = 0;
  int steps = 0;
  while (const uint32_t step = cache_.EvictToWatermark()) {
    evicted += step;
    ++steps;
  }
  EXPECT_GT(steps, 1);  // the mutex is not held for long at a time
  EXPECT_EQ(Free(), kHigh);
  EXPECT_EQ(evicted, kHigh - kLow + 1);
  EXPECT_EQ(cache_.Stats().counters.evicted_pages_for_watermark, evicted);
  // When the high mark is reached, the low mark decides again.
  Publish(kHigh - kLow);
  EXPECT_EQ(cache_.EvictToWatermark(), 0u);
}

TEST_F(WatermarkTest, WithNothingToEvictGivesUp) {
  ASSERT_EQ(Outcome(cache_.Allocate(
                {.session = session_, .ns = kNoNamespace, .pages = kPages})),
            "OK");
  EXPECT_EQ(cache_.EvictToWatermark(), 0u);
}

TEST_F(WatermarkTest, WithoutMarksNothingIsEvicted) {
  PrefixCache cache({1, 3});
  cache.OpenSession(session_, "one");
  ASSERT_EQ(Outcome(cache.Allocate(
                {.session = session_, .ns = kNoNamespace, .pages = 2})),
            "OK");
  EXPECT_EQ(cache.EvictToWatermark(), 0u);
}

TEST_F(QuotaTest, ALowerCapEvictsNothingAndCountsForWhatIsAskedNext) {
  Publish(kCapped, {1, 2, 3});
  cache_.SetQuotas({{.name = "capped", .pattern = "capped", .cap_pages = 2},
                    {.name = "sure", .pattern = "sure/*", .floor_pages = 3}});
  EXPECT_EQ(Class("capped").cached_pages, 3u);
  EXPECT_EQ(Class("capped").cap_pages, 2u);
  EXPECT_EQ(Outcome(Allocate(kCapped, 3)), "QUOTA_EXCEEDED");
  EXPECT_EQ(Outcome(Allocate(kCapped, 1)), "OK");
  EXPECT_EQ(Class("capped").cached_pages, 1u);
}

TEST_F(QuotaTest, AFloorThatIsTakenAwayProtectsNoMore) {
  Publish(kSure, {1, 2, 3});
  EXPECT_EQ(cache_.Evict(3), 0u);
  cache_.SetQuotas({{.name = "capped", .pattern = "capped"},
                    {.name = "sure", .pattern = "sure/*"}});
  EXPECT_EQ(cache_.Evict(3), 3u);
}

TEST_F(QuotaTest, AWatermarkThatIsSetIsKeptFromThenOn) {
  Publish(kOther, {1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_EQ(cache_.EvictToWatermark(), 0u);
  cache_.SetWatermark(3, 5);
  EXPECT_EQ(cache_.EvictToWatermark(), 3u);
  cache_.SetWatermark(0, 0);
  Publish(kOther, {11, 12, 13, 14, 15});
  EXPECT_EQ(cache_.EvictToWatermark(), 0u);
}

}  // namespace
}  // namespace pando
