#include "core/nodes/page_pool.h"

#include "core/requests/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pando {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAreArray;

class PagePoolTest : public testing::Test {
 protected:
  void TearDown() override {
    std::vector<std::string> violations;
    for (uint32_t page = 0; page < pool_.capacity(); ++page) {
      pool_.AppendViolations(PageId(page), violations);
    }
    EXPECT_THAT(violations, IsEmpty());
    EXPECT_EQ(pool_.listed_free_pages(), pool_.count(PageState::kFree));
  }

  std::vector<PageId> Reserve(uint32_t n) {
    std::vector<PageId> pages;
    pool_.Reserve(n, 0, owner_, pages);
    return pages;
  }

  PagePool pool_{8, 1};
  PageOwner owner_;
};

TEST_F(PagePoolTest, StartsWithAllPagesFreeButThePaddingPage) {
  EXPECT_EQ(pool_.state(kPaddingPage), PageState::kPadding);
  EXPECT_EQ(pool_.count(PageState::kFree), 7u);
  EXPECT_FALSE(pool_.IsInRange(kPaddingPage));
  EXPECT_TRUE(pool_.IsInRange(PageId(7)));
  EXPECT_FALSE(pool_.IsInRange(PageId(8)));
}

TEST_F(PagePoolTest, AppendsToTheOutput) {
  std::vector<PageId> pages = {PageId(99)};
  pool_.Reserve(2, 0, owner_, pages);
  EXPECT_EQ(pages.size(), 3u);
  EXPECT_EQ(pages[0], PageId(99));
}

TEST_F(PagePoolTest, KnowsTheOwnerOfAReservedPage) {
  const auto pages = Reserve(2);
  PageOwner other;
  EXPECT_TRUE(pool_.IsReservedBy(owner_, pages[0]));
  EXPECT_FALSE(pool_.IsReservedBy(other, pages[0]));
  pool_.Seal(owner_, {&pages[0], 1});
  EXPECT_FALSE(pool_.IsReservedBy(owner_, pages[0]));
}

TEST_F(PagePoolTest, PagesLeaveTheOwnersListInAnyOrder) {
  const auto pages = Reserve(5);
  pool_.Release(owner_, pages[1]);
  pool_.Seal(owner_, {&pages[4], 1});
  pool_.Release(owner_, pages[0]);
  EXPECT_THAT(owner_.pages, UnorderedElementsAreArray({pages[2], pages[3]}));
  pool_.Release(owner_, pages[3]);
  EXPECT_THAT(owner_.pages, ElementsAre(pages[2]));
}

TEST_F(PagePoolTest, GenerationChangesWhenAPageIsSealedAndWhenItIsFreed) {
  const PageId page = Reserve(1)[0];
  const uint32_t reserved = pool_.generation(page);
  pool_.Seal(owner_, {&page, 1});
  const uint32_t sealed = pool_.generation(page);
  EXPECT_NE(sealed, reserved);
  pool_.FreeSealed(std::vector{page});
  EXPECT_NE(pool_.generation(page), sealed);
}

TEST_F(PagePoolTest, QuarantineTakesTheLastPagesOfItsOwner) {
  const auto pages = Reserve(3);
  std::vector<PageId> taken;
  pool_.Quarantine(owner_, 2, taken);
  EXPECT_THAT(taken, ElementsAre(pages[1], pages[2]));
  EXPECT_THAT(owner_.pages, ElementsAre(pages[0]));
  pool_.Quarantine(owner_, 2, taken);
  EXPECT_THAT(taken, ElementsAre(pages[1], pages[2], pages[0]));
  EXPECT_THAT(owner_.pages, IsEmpty());
  EXPECT_EQ(pool_.count(PageState::kQuarantined), 3u);
  pool_.FreeQuarantined(taken);
  EXPECT_EQ(pool_.count(PageState::kFree), 7u);
}

TEST_F(PagePoolTest, ReservedPagesAreTheOwnersAndListedOnce) {
  const auto pages = Reserve(2);
  PageOwner other;
  std::vector<PageId> others;
  pool_.Reserve(1, 0, other, others);
  const auto reason = [&](std::vector<PageId> list) {
    return ReasonOf(pool_.CheckReserved(owner_, list));
  };
  EXPECT_EQ(reason({}), std::nullopt);
  EXPECT_EQ(reason(pages), std::nullopt);
  EXPECT_EQ(reason({pages[0], others[0]}), Reason::kPageNotOwned);
  EXPECT_EQ(reason({pages[0], kPaddingPage}), Reason::kPageOutOfRange);
  EXPECT_EQ(reason({pages[0], pages[1], pages[0]}), Reason::kDuplicatePage);
  EXPECT_EQ(reason(pages), std::nullopt);  // failures left no trace
}

}  // namespace
}  // namespace pando
