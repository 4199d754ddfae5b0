// Tests of room, quotas and eviction without sessions, locks or prompts.

#include "core/parts/page_budget.h"

#include <string>
#include <vector>

#include "core/journal/cache_journal.h"
#include "core/requests/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pando {
namespace {

using ::testing::HasSubstr;

// A test with ten pages for the classes "a", "b" and all others.
class PageBudgetTest : public testing::Test {
 protected:
  static constexpr uint32_t kA = 0;
  static constexpr uint32_t kB = 1;
  static constexpr uint32_t kOthers = 2;
  static constexpr uint32_t kPages = 10;

  void SetQuotas(PageLimits a, PageLimits b) {
    budget_.SetQuotas({{"a", "a", a.floor_pages, a.cap_pages},
                       {"b", "b", b.floor_pages, b.cap_pages}});
  }

  // Reserves the pages. Returns "OK", or the reason why there is no room.
  std::string Reserve(uint32_t quota_class, uint32_t pages) {
    const absl::Status room = budget_.CheckRoom(pages, quota_class, 0);
    if (!room.ok()) return std::string(ReasonName(*ReasonOf(room)));
    std::vector<PageId> reserved;
    budget_.Reserve(pages, quota_class, owner_, reserved);
    EXPECT_EQ(reserved.size(), pages);
    return "OK";
  }

  // Caches `pages` pages of a class, each as a prompt of one page.
  void Cache(uint32_t quota_class, uint32_t pages) {
    ASSERT_EQ(Reserve(quota_class, pages), "OK");
    const NamespaceKey ns{.extra_key = kNames[quota_class], .cache_salt = {}};
    for (uint32_t i = 0; i < pages; ++i) {
      const PageId page = owner_.pages.back();
      tree_.AddLeaf(*tree_.FindOrMakeNamespace(ns).root,
                    SegmentRef::Copy({{++last_token_}}, {{page}}), {});
      pool_.Seal(owner_, {&page, 1});
    }
  }

  uint32_t Free() const { return pool_.count(PageState::kFree); }

  static constexpr const char* kNames[] = {"a", "b", "c"};
  const QuotaClasses classes_{{{"a", "a"}, {"b", "b"}}};
  RadixTree tree_{1, kPages + 1, EvictionPolicyKind::kLru, &classes_};
  PagePool pool_{kPages + 1, classes_.count()};
  CacheJournal journal_{kPages + 1, classes_.count(), 0};
  PageBudget budget_{&classes_, &tree_, &pool_, &journal_};
  PageOwner owner_;
  Token last_token_ = 0;
};

TEST_F(PageBudgetTest, FreePagesAreTakenBeforeAnythingIsEvicted) {
  Cache(kOthers, 4);
  EXPECT_EQ(Reserve(kOthers, 6), "OK");
  EXPECT_EQ(tree_.evictable_pages(), 4u);
  EXPECT_EQ(Reserve(kOthers, 3), "OK");
  EXPECT_EQ(tree_.evictable_pages(), 1u);
}

TEST_F(PageBudgetTest, AClassMayReserveTheMostPagesButNotOneMore) {
  SetQuotas({.floor_pages = 3, .cap_pages = 5}, {});
  Cache(kA, 4);
  Cache(kOthers, 2);
  for (uint32_t c : {kA, kB, kOthers}) {
    const uint32_t most = budget_.MaxMorePages(c);
    EXPECT_TRUE(budget_.CheckRoom(most, c, 0).ok()) << c;
    EXPECT_FALSE(budget_.CheckRoom(most + 1, c, 0).ok()) << c;
  }
  EXPECT_EQ(budget_.MaxMorePages(kA), 5u);
  EXPECT_EQ(budget_.MaxMorePages(kOthers), 7u);
}

TEST_F(PageBudgetTest, WhatIsHeldBackIsNoRoom) {
  Cache(kOthers, 4);
  EXPECT_TRUE(budget_.CheckRoom(10, kOthers, 0).ok());
  EXPECT_TRUE(budget_.CheckRoom(7, kOthers, 3).ok());
  const absl::Status refused = budget_.CheckRoom(8, kOthers, 3);
  EXPECT_EQ(ReasonOf(refused), Reason::kPoolExhausted);
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("8 pages are needed, but only 6 are free and 1 "
                        "evictable of 10; 3 are protected"));
}

TEST_F(PageBudgetTest, ARefusalIsCountedByItsKind) {
  SetQuotas({.cap_pages = 2}, {});
  EXPECT_EQ(Reserve(kA, 3), "QUOTA_EXCEEDED");
  EXPECT_EQ(Reserve(kB, 10), "OK");
  EXPECT_EQ(Reserve(kB, 1), "POOL_EXHAUSTED");
  EXPECT_EQ(Reserve(kB, 11), "POOL_EXHAUSTED");
  const auto& failed = journal_.measured().failed_allocations;
  EXPECT_EQ(failed[AllocationFailure::kQuota], 1u);
  EXPECT_EQ(failed[AllocationFailure::kExhausted], 1u);
  EXPECT_EQ(failed[AllocationFailure::kTooLarge], 1u);
}

TEST_F(PageBudgetTest, AClassAtItsCapGivesUpItsOwnPages) {
  SetQuotas({.cap_pages = 3}, {});
  Cache(kB, 2);  // older than A's pages
  Cache(kA, 3);
  EXPECT_EQ(Reserve(kA, 2), "OK");
  EXPECT_EQ(tree_.cached_pages(kA), 1u);
  EXPECT_EQ(tree_.cached_pages(kB), 2u);
}

TEST_F(PageBudgetTest, OthersLeaveAClassItsFloor) {
  SetQuotas({.floor_pages = 3}, {});
  Cache(kA, 5);
  EXPECT_EQ(Reserve(kB, 8), "POOL_EXHAUSTED");
  EXPECT_EQ(Reserve(kB, 7), "OK");
  EXPECT_EQ(tree_.cached_pages(kA), 3u);
  EXPECT_EQ(budget_.Evict(9, EvictionReason::kRequest), 0u);
}

TEST_F(PageBudgetTest, AFloorIsOfCachedPages) {
  SetQuotas({.floor_pages = 3}, {});
  Cache(kA, 3);
  ASSERT_EQ(Reserve(kA, 3), "OK");
  EXPECT_EQ(budget_.Evict(9, EvictionReason::kRequest), 0u);
  EXPECT_EQ(Reserve(kB, 5), "POOL_EXHAUSTED");
  EXPECT_EQ(Reserve(kB, 4), "OK");
}

TEST_F(PageBudgetTest, PagesOfAnotherClassJoinOneUpToItsCap) {
  SetQuotas({.cap_pages = 2}, {});
  ASSERT_EQ(Reserve(kB, 3), "OK");
  const std::span<const PageId> pages = owner_.pages;
  EXPECT_TRUE(budget_.CheckMayCache(pages.first(2), kA).ok());
  EXPECT_EQ(ReasonOf(budget_.CheckMayCache(pages, kA)), Reason::kQuotaExceeded);
  EXPECT_TRUE(budget_.CheckMayCache(pages, kB).ok());
}

TEST_F(PageBudgetTest, TheWatermarkEvictsFromTheLowMarkToTheHighOne) {
  budget_.SetWatermark(2, 5);
  Cache(kOthers, 8);
  EXPECT_EQ(budget_.EvictToWatermark(9), 0u);  // two pages are free
  ASSERT_EQ(Reserve(kOthers, 1), "OK");
  EXPECT_EQ(budget_.EvictToWatermark(1), 1u);
  EXPECT_EQ(budget_.EvictToWatermark(9), 3u);
  EXPECT_EQ(Free(), 5u);
  EXPECT_EQ(budget_.EvictToWatermark(9), 0u);
}

TEST_F(PageBudgetTest, AFlushKeepsNoFloor) {
  SetQuotas({.floor_pages = 3}, {});
  Cache(kA, 3);
  const uint32_t cells = tree_.node_cells();
  const PageBudget::Flushed some = budget_.Flush(0, cells, std::nullopt, 2);
  EXPECT_EQ(some.pages, 2u);
  EXPECT_LT(some.next, cells);
  const PageBudget::Flushed rest =
      budget_.Flush(some.next, cells, std::nullopt, 2, some.rest);
  EXPECT_EQ(rest.pages, 1u);
  EXPECT_EQ(rest.next, cells);
  EXPECT_EQ(Free(), kPages);
}

TEST_F(PageBudgetTest, AFlushOfOneNamespaceLeavesTheOthers) {
  Cache(kA, 3);
  Cache(kB, 2);
  const NamespaceNumber a =
      tree_.FindNamespace({.extra_key = kNames[kA], .cache_salt = {}})->number;
  EXPECT_EQ(budget_.Flush(0, tree_.node_cells(), a, kPages).pages, 3u);
  EXPECT_EQ(tree_.cached_pages(kB), 2u);
}

}  // namespace
}  // namespace pando
