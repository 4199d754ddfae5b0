// Tests of wrong requests. Each has its own reason and changes nothing.

#include <set>
#include <string>

#include "tests/core/cache_fixture.h"

namespace pando {
namespace {

using ::testing::HasSubstr;

class ErrorTest : public CacheFixture {
 protected:
  ErrorTest()
      : cached_(Publish("ab")),
        mine_(Allocate(3)),
        theirs_(Allocate(OpenSession(), 1)[0]) {}

  // Inserts "abcd", of which two pages are cached and two are new. Returns the
  // outcome.
  std::string InsertOutcome(const std::vector<PageId>& pages,
                            const std::vector<PageId>& free_pages = {}) {
    const auto tokens = Spell("abcd");
    return Unchanged(cache_
                         .Insert({.session = session_,
                                  .ns = kNoNamespace,
                                  .tokens = tokens,
                                  .pages = pages,
                                  .free_pages = free_pages})
                         .status());
  }
  std::string FreeOutcome(const std::vector<PageId>& pages) {
    return Unchanged(cache_.Free(session_, pages));
  }
  std::string Unchanged(const absl::Status& status) {
    EXPECT_EQ(Snapshot(), before_);
    EXPECT_THAT(cache_.CheckInvariants(), testing::IsEmpty());
    return Outcome(status);
  }

  const std::vector<PageId> cached_;
  const std::vector<PageId> mine_;
  const PageId theirs_;
  const StatsSnapshot before_ = Snapshot();
};

TEST_F(ErrorTest, InsertNeedsOnePageForEachWholePageOfTokens) {
  EXPECT_EQ(InsertOutcome(mine_), "INVALID_ALIGNMENT");
  EXPECT_EQ(InsertOutcome({}), "INVALID_ALIGNMENT");
  EXPECT_EQ(InsertOutcome(Concat(cached_, mine_)), "INVALID_ALIGNMENT");
}

TEST_F(ErrorTest, InsertRefusesThePaddingPageAndPagesOutOfRange) {
  EXPECT_EQ(InsertOutcome({cached_[0], cached_[1], mine_[0], kPaddingPage}),
            "PAGE_OUT_OF_RANGE");
  EXPECT_EQ(
      InsertOutcome({cached_[0], cached_[1], mine_[0], PageId(kCapacity)}),
      "PAGE_OUT_OF_RANGE");
  EXPECT_EQ(InsertOutcome({PageId(UINT32_MAX), cached_[1], mine_[0], mine_[1]}),
            "PAGE_OUT_OF_RANGE");
}

TEST_F(ErrorTest, InsertRefusesPagesThatAreNotTheSessions) {
  const PageId free(kCapacity - 1);
  EXPECT_EQ(InsertOutcome({cached_[0], cached_[1], mine_[0], theirs_}),
            "PAGE_NOT_OWNED");
  EXPECT_EQ(InsertOutcome({cached_[0], cached_[1], mine_[0], free}),
            "PAGE_NOT_OWNED");
}

TEST_F(ErrorTest, InsertRefusesACachedPageInAnotherPlace) {
  EXPECT_EQ(InsertOutcome({cached_[0], cached_[0], mine_[0], mine_[1]}),
            "PAGE_NOT_OWNED");
  EXPECT_EQ(InsertOutcome({cached_[0], cached_[1], cached_[1], mine_[1]}),
            "PAGE_NOT_OWNED");
}

TEST_F(ErrorTest, InsertRefusesAPageListedTwice) {
  EXPECT_EQ(InsertOutcome({cached_[0], cached_[1], mine_[0], mine_[0]}),
            "DUPLICATE_PAGE");
  EXPECT_EQ(InsertOutcome({mine_[0], cached_[1], mine_[1], mine_[0]}),
            "DUPLICATE_PAGE");
}

TEST_F(ErrorTest, InsertRefusesToFreeWhatItPublishesOrDoesNotOwn) {
  const std::vector pages = {cached_[0], cached_[1], mine_[0], mine_[1]};
  EXPECT_EQ(InsertOutcome(pages, {mine_[0]}), "DUPLICATE_PAGE");
  EXPECT_EQ(InsertOutcome(pages, {mine_[2], mine_[2]}), "DUPLICATE_PAGE");
  EXPECT_EQ(InsertOutcome(pages, {cached_[0]}), "PAGE_NOT_OWNED");
  EXPECT_EQ(InsertOutcome(pages, {theirs_}), "PAGE_NOT_OWNED");
  EXPECT_EQ(InsertOutcome(pages, {kPaddingPage}), "PAGE_OUT_OF_RANGE");
}

TEST_F(ErrorTest, InsertRefusesALockActionWithoutALock) {
  for (const LockAction action : {LockAction::kRelock, LockAction::kUnlock}) {
    EXPECT_EQ(Unchanged(InsertAt(LockId(), "a", {mine_[0]}, action).status()),
              "INVALID_FIELD");
  }
}

TEST_F(ErrorTest, InsertRefusesAnUnknownLock) {
  EXPECT_EQ(Unchanged(InsertAt(LockId(77), "a", {mine_[0]}).status()),
            "LOCK_UNKNOWN");
  EXPECT_EQ(Unchanged(InsertAt(LockId(UINT64_MAX), "a", {mine_[0]}).status()),
            "LOCK_UNKNOWN");
}

TEST_F(ErrorTest, FreeRefusesWhatTheSessionDoesNotOwn) {
  EXPECT_EQ(FreeOutcome({mine_[0], theirs_}), "PAGE_NOT_OWNED");
  EXPECT_EQ(FreeOutcome({mine_[0], cached_[0]}), "PAGE_NOT_OWNED");
  EXPECT_EQ(FreeOutcome({mine_[0], mine_[1], mine_[0]}), "DUPLICATE_PAGE");
  EXPECT_EQ(FreeOutcome({mine_[0], kPaddingPage}), "PAGE_OUT_OF_RANGE");
  EXPECT_EQ(FreeOutcome({mine_[0], PageId(kCapacity)}), "PAGE_OUT_OF_RANGE");
}

TEST_F(ErrorTest, MatchRefusesToReserveWithoutALock) {
  const auto tokens = Spell("ab");
  EXPECT_EQ(Unchanged(cache_
                          .Match({.session = session_,
                                  .ns = kNoNamespace,
                                  .tokens = tokens,
                                  .reserve_tokens = 1})
                          .status()),
            "INVALID_FIELD");
}

TEST_F(ErrorTest, UnlockRefusesUnknownLocks) {
  EXPECT_EQ(Unchanged(Unlock(LockId())), "LOCK_UNKNOWN");
  EXPECT_EQ(Unchanged(Unlock(LockId(1))), "LOCK_UNKNOWN");
}

TEST_F(ErrorTest, MessagesNameTheValueAndTheLimit) {
  const auto exhausted =
      cache_.Allocate({session_, kNoNamespace, 100}).status();
  EXPECT_THAT(std::string(exhausted.message()), HasSubstr("100 pages"));
  EXPECT_THAT(std::string(exhausted.message()), HasSubstr("of 15"));
  const auto range = cache_.Free(session_, std::vector{PageId(16)});
  EXPECT_THAT(std::string(range.message()), HasSubstr("16 is not in 1..15"));
}

TEST(ReasonTest, EachHasItsOwnNameAndComesBackFromAStatus) {
  std::set<std::string_view> names;
  for (int i = 0; i <= static_cast<int>(Reason::kDraining); ++i) {
    const auto reason = static_cast<Reason>(i);
    EXPECT_TRUE(names.insert(ReasonName(reason)).second) << ReasonName(reason);
    const absl::Status status = MakeError(reason, "why");
    EXPECT_FALSE(status.ok());
    EXPECT_EQ(status.message(), "why");
    EXPECT_EQ(ReasonOf(status), reason);
  }
}

TEST(ReasonTest, OtherStatusesHaveNone) {
  EXPECT_EQ(ReasonOf(absl::OkStatus()), std::nullopt);
  EXPECT_EQ(ReasonOf(absl::InternalError("")), std::nullopt);
  absl::Status newer = MakeError(Reason::kSessionLost, "");
  newer.ForEachPayload([&](absl::string_view type, const absl::Cord&) {
    newer.SetPayload(type, absl::Cord("A_REASON_OF_LATER"));
  });
  EXPECT_EQ(ReasonOf(newer), std::nullopt);
}

}  // namespace
}  // namespace pando
