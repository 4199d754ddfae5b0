// An insert looks up its anchor, copies its tokens outside the mutex, and then
// publishes them. An operation reads the cache's clock before taking the mutex.
// These tests use a clock that makes other calls of the session at that moment.

#include <functional>
#include <utility>
#include <vector>

#include "tests/core/cache_fixture.h"

namespace pando {
namespace {

std::function<void()> meanwhile;

int64_t ClockThatLetsOthersGoFirst() {
  if (meanwhile) std::exchange(meanwhile, nullptr)();
  return 0;
}

class InsertRaceTest : public testing::Test {
 protected:
  InsertRaceTest() {
    cache_.OpenSession(kSession, "two threads");
    const auto match = cache_.Match({.session = kSession,
                                     .ns = kNoNamespace,
                                     .tokens = tokens_,
                                     .lock = true,
                                     .reserve_tokens = 2 * kPageTokens});
    lock_ = match->lock;
    pages_ = match->reserved;
  }
  void TearDown() override {
    EXPECT_FALSE(meanwhile) << "nothing happened in between";
    EXPECT_THAT(cache_.CheckInvariants(), testing::IsEmpty());
  }

  absl::StatusOr<InsertResult> Insert() {
    return cache_.Insert({.session = kSession,
                          .ns = kNoNamespace,
                          .tokens = tokens_,
                          .pages = pages_,
                          .anchor = lock_,
                          .request_id = kId});
  }

  static constexpr uint32_t kPageTokens = 4;
  static constexpr SessionId kSession{1};
  static constexpr RequestId kId{7};
  PrefixCache cache_{{.page_tokens = kPageTokens,
                      .capacity_pages = 16,
                      .clock = ClockThatLetsOthersGoFirst}};
  const std::vector<Token> tokens_ = SpellTokens("ab", kPageTokens);
  LockId lock_;
  std::vector<PageId> pages_;
};

TEST_F(InsertRaceTest, ARepeatThatGoesFirstPublishesAndTheFirstIsTheRepeat) {
  absl::StatusOr<InsertResult> repeat;
  meanwhile = [&] { repeat = Insert(); };
  const auto first = Insert();
  EXPECT_FALSE(repeat->is_repeat);
  EXPECT_TRUE(first->is_repeat);
  EXPECT_EQ(first->handle, repeat->handle);
  EXPECT_EQ(cache_.Stats().counters.inserts, 1u);
}

TEST_F(InsertRaceTest, AnotherKindOfCallThatTakesTheIdFirstRefusesTheInsert) {
  meanwhile = [&] {
    EXPECT_EQ(Outcome(cache_.Allocate({.session = kSession,
                                       .ns = kNoNamespace,
                                       .pages = 1,
                                       .request_id = kId})),
              "OK");
  };
  EXPECT_EQ(Outcome(Insert()), "REQUEST_ID_REUSED");
}

TEST_F(InsertRaceTest, OfTwoThatTakeTheSameTokensOfAHeldPromptTheLaterFails) {
  const auto insert_held = [&](size_t page) {
    return cache_.Insert({.session = kSession,
                          .ns = kNoNamespace,
                          .tokens = {},
                          .pages = std::span(pages_).subspan(page, 1),
                          .anchor = lock_,
                          .lock_action = LockAction::kRelock,
                          .prompt_tokens = kPageTokens});
  };
  meanwhile = [&] { EXPECT_EQ(Outcome(insert_held(0)), "OK"); };
  EXPECT_EQ(Outcome(insert_held(1)), "LOCK_MOVED");
  EXPECT_EQ(Outcome(insert_held(1)), "OK");
}

TEST_F(InsertRaceTest, AnAnchorThatIsUnlockedFirstIsUnknown) {
  meanwhile = [&] {
    EXPECT_EQ(Outcome(cache_.Unlock(kSession, std::vector{lock_})), "OK");
  };
  EXPECT_EQ(Outcome(Insert()), "LOCK_UNKNOWN");
  EXPECT_EQ(cache_.Stats().pages.reserved, 2u);
}

TEST_F(InsertRaceTest, ASessionThatEndsFirstIsLost) {
  meanwhile = [&] { cache_.CloseSession(kSession); };
  EXPECT_EQ(Outcome(Insert()), "SESSION_LOST");
  EXPECT_EQ(cache_.Stats().pages.evictable, 0u);
}

}  // namespace
}  // namespace pando
