// Calls of many pages run in bounded steps. The cache changes between the
// steps.

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/match/freeing.h"
#include "core/nodes/step_sizes.h"
#include "tests/core/cache_fixture.h"

namespace pando {
namespace {

using ::testing::ElementsAreArray;
using ::testing::IsEmpty;

// A test with one token to a page.
class LargeCallsTest : public testing::Test {
 protected:
  static constexpr uint32_t kPages = 12'000;

  LargeCallsTest() {
    cache_.OpenSession(session_, "one");
    cache_.OpenSession(other_, "another");
  }
  void TearDown() override { EXPECT_THAT(cache_.CheckInvariants(), IsEmpty()); }

  static std::vector<Token> Tokens(uint32_t count, Token first = 1) {
    std::vector<Token> tokens(count);
    std::iota(tokens.begin(), tokens.end(), first);
    return tokens;
  }
  // Fills the cache with leaves of one page each.
  void FillWithLeaves() {
    for (Token i = 1; i <= kPages; ++i) {
      const auto pages = Allocate(session_, 1);
      ASSERT_EQ(Outcome(Insert({1'000'000 + i}, pages)), "OK");
    }
  }
  std::vector<PageId> Allocate(SessionId session, uint32_t pages) {
    return cache_.Allocate({session, kNoNamespace, pages})->pages;
  }
  absl::StatusOr<InsertResult> Insert(const std::vector<Token>& tokens,
                                      const std::vector<PageId>& pages) {
    return cache_.Insert({.session = session_,
                          .ns = kNoNamespace,
                          .tokens = tokens,
                          .pages = pages});
  }
  // Takes the remaining steps and checks the invariants after each. Returns the
  // number of steps.
  template <typename Work>
  uint32_t TakeSteps(Work& work) {
    uint32_t steps = 1;
    for (; !cache_.Step(work); ++steps) {
      EXPECT_THAT(cache_.CheckInvariants(), IsEmpty());
    }
    return steps;
  }
  MatchRequest Admission(const std::vector<Token>& tokens, uint32_t pages,
                         RequestId id = {}) const {
    return {.session = session_,
            .ns = kNoNamespace,
            .tokens = tokens,
            .lock = true,
            .reserve_tokens = pages,
            .request_id = id};
  }
  std::vector<PageId> PagesOf(const std::vector<Token>& tokens) {
    return cache_
        .Match({.session = {},
                .ns = kNoNamespace,
                .tokens = tokens,
                .touch = false})
        ->pages;
  }
  PageCounts Counts() { return cache_.Stats().pages; }

  PrefixCache cache_{{.page_tokens = 1, .capacity_pages = kPages + 1}};
  const SessionId session_{1};
  const SessionId other_{2};
};

TEST_F(LargeCallsTest, AnAllocationEvictsSomePagesInEachStep) {
  FillWithLeaves();
  Allocation work = cache_.Start(AllocateRequest{
      .session = session_, .ns = kNoNamespace, .pages = kPages});
  for (uint32_t reserved = 0; reserved < kPages;) {
    const bool is_over = cache_.Step(work);
    EXPECT_LE(Counts().reserved - reserved, kStepReservedPages);
    reserved = Counts().reserved;
    ASSERT_EQ(is_over, reserved == kPages);
    EXPECT_THAT(cache_.CheckInvariants(), IsEmpty());
  }
  const auto result = work.Take();
  ASSERT_EQ(Outcome(result), "OK");
  EXPECT_EQ(std::set<PageId>(result->pages.begin(), result->pages.end()).size(),
            kPages);
  EXPECT_EQ(result->room, PageRoom());
}

TEST_F(LargeCallsTest, AnAllocationThatLosesItsRoomGivesBackWhatItHas) {
  Allocation work = cache_.Start(AllocateRequest{
      .session = session_, .ns = kNoNamespace, .pages = kPages});
  EXPECT_FALSE(cache_.Step(work));
  Allocate(other_, 1);
  TakeSteps(work);
  EXPECT_EQ(Outcome(work.Take()), "POOL_EXHAUSTED");
  EXPECT_EQ(Counts().reserved, 1u);
}

TEST_F(LargeCallsTest, AnAllocationThatLosesRoomKeepsWhatIsEnough) {
  Allocation work = cache_.Start(AllocateRequest{.session = session_,
                                                 .ns = kNoNamespace,
                                                 .pages = kPages,
                                                 .min_pages = 5'000});
  EXPECT_FALSE(cache_.Step(work));
  Allocate(other_, 2'000);
  TakeSteps(work);
  const auto result = work.Take();
  ASSERT_EQ(Outcome(result), "OK");
  EXPECT_GE(result->pages.size(), 5'000u);
  EXPECT_EQ(Counts().reserved, 2'000 + result->pages.size());
}

TEST_F(LargeCallsTest, ARepeatWaitsForTheCallThatIsUnderWay) {
  const AllocateRequest request{.session = session_,
                                .ns = kNoNamespace,
                                .pages = 5'000,
                                .request_id = RequestId(7)};
  Allocation work = cache_.Start(request);
  Allocation repeat = cache_.Start(request);
  EXPECT_FALSE(cache_.Step(work));
  EXPECT_FALSE(cache_.Step(repeat));
  EXPECT_EQ(Outcome(cache_.Unlock(session_, {}, RequestId(7))),
            "REQUEST_ID_REUSED");
  TakeSteps(work);
  EXPECT_TRUE(cache_.Step(repeat));
  const auto again = repeat.Take();
  EXPECT_TRUE(again->is_repeat);
  EXPECT_THAT(again->pages, ElementsAreArray(work.Take()->pages));
  EXPECT_EQ(Counts().reserved, 5'000u);
}

TEST_F(LargeCallsTest, AnAllocationThatIsAbandonedGivesBackItsPages) {
  const AllocateRequest request{.session = session_,
                                .ns = kNoNamespace,
                                .pages = 5'000,
                                .request_id = RequestId(7)};
  Allocation work = cache_.Start(request);
  EXPECT_FALSE(cache_.Step(work));
  EXPECT_TRUE(work.Abandon());
  TakeSteps(work);
  EXPECT_EQ(Counts().reserved, 0u);
  EXPECT_EQ(cache_.Allocate(request)->pages.size(), 5'000u);
}

TEST_F(LargeCallsTest, TheEndOfTheSessionEndsItsCalls) {
  const auto pages = Allocate(session_, 6'000);
  const auto tokens = Tokens(6'000);
  Inserting insert = cache_.Start(InsertRequest{.session = session_,
                                                .ns = kNoNamespace,
                                                .tokens = tokens,
                                                .pages = pages});
  Allocation allocation = cache_.Start(
      AllocateRequest{.session = session_, .ns = kNoNamespace, .pages = 5'000});
  const auto others = Tokens(100, 900'000);
  Matching match = cache_.Start(Admission(others, 2'000));
  EXPECT_FALSE(cache_.Step(insert));
  EXPECT_FALSE(cache_.Step(allocation));
  Freeing freeing(session_, pages, {});
  EXPECT_FALSE(cache_.Step(freeing));
  EXPECT_FALSE(cache_.Step(match));
  cache_.CloseSession(session_);
  TakeSteps(insert);
  TakeSteps(allocation);
  TakeSteps(freeing);
  TakeSteps(match);
  EXPECT_EQ(Outcome(insert.Take()), "SESSION_LOST");
  EXPECT_EQ(Outcome(allocation.Take()), "SESSION_LOST");
  EXPECT_EQ(Outcome(freeing.status()), "SESSION_LOST");
  EXPECT_EQ(Outcome(match.Take()), "SESSION_LOST");
  EXPECT_EQ(Counts().free, kPages);
}

TEST_F(LargeCallsTest, AMatchReservesSomePagesInEachStep) {
  FillWithLeaves();
  const auto prompt = Tokens(10'000);
  Matching work = cache_.Start(Admission(prompt, 10'000));
  EXPECT_FALSE(cache_.Step(work));
  EXPECT_EQ(Counts().reserved, kStepReservedPages);
  // After the first step, other sessions know that this session computes the
  // prompt.
  EXPECT_TRUE(cache_.Score({.ns = kNoNamespace, .tokens = prompt})->is_pending);
  EXPECT_EQ(TakeSteps(work), 10'000 / kStepReservedPages + 1);
  const auto match = work.Take();
  ASSERT_EQ(Outcome(match), "OK");
  EXPECT_EQ(match->reserved.size(), 10'000u);
  // The lock holds the prompt, so an insert can take the tokens from it.
  EXPECT_EQ(Outcome(cache_.Insert({.session = session_,
                                   .ns = kNoNamespace,
                                   .tokens = {},
                                   .pages = match->reserved,
                                   .anchor = match->lock,
                                   .lock_action = LockAction::kUnlock,
                                   .prompt_tokens = 10'000})),
            "OK");
  EXPECT_THAT(PagesOf(prompt), ElementsAreArray(match->reserved));
}

TEST_F(LargeCallsTest, AMatchThatLosesItsRoomGivesBackAll) {
  const auto prompt = Tokens(kPages);
  Matching work = cache_.Start(Admission(prompt, kPages));
  EXPECT_FALSE(cache_.Step(work));
  Allocate(other_, 1);
  TakeSteps(work);
  EXPECT_EQ(Outcome(work.Take()), "POOL_EXHAUSTED");
  EXPECT_EQ(Counts().reserved, 1u);
  EXPECT_EQ(cache_.Stats().locks, 0u);
}

TEST_F(LargeCallsTest, AMatchThatIsAbandonedGivesBackAll) {
  const auto prompt = Tokens(kPages);
  Matching work = cache_.Start(Admission(prompt, kPages, RequestId(3)));
  EXPECT_FALSE(cache_.Step(work));
  EXPECT_TRUE(work.Abandon());
  TakeSteps(work);
  EXPECT_EQ(Counts().free, kPages);
  EXPECT_EQ(cache_.Stats().locks, 0u);
  EXPECT_EQ(Outcome(cache_.Match(Admission(prompt, kPages, RequestId(3)))),
            "OK");
}

TEST_F(LargeCallsTest, PagesAreFreedInStepsAndAllOrNone) {
  auto pages = Allocate(session_, 10'000);
  const auto foreign = Allocate(other_, 1);
  for (const auto& [last, outcome] :
       {std::pair{pages.front(), "DUPLICATE_PAGE"},
        std::pair{foreign.front(), "PAGE_NOT_OWNED"},
        std::pair{PageId(kPages + 1), "PAGE_OUT_OF_RANGE"}}) {
    auto listed = pages;
    listed.push_back(last);
    EXPECT_EQ(Outcome(cache_.Free(session_, listed, RequestId(5))), outcome);
    EXPECT_EQ(Counts().reserved, 10'001u);
  }
  Freeing work(session_, pages, RequestId(5));
  Freeing repeat(session_, pages, RequestId(5));
  uint32_t steps = 0;
  for (uint32_t reserved = Counts().reserved; !cache_.Step(work); ++steps) {
    EXPECT_LE(reserved - Counts().reserved, kStepFreedPages);
    reserved = Counts().reserved;
    EXPECT_FALSE(cache_.Step(repeat));
  }
  EXPECT_EQ(steps, 2 * ((10'000 + kStepFreedPages - 1) / kStepFreedPages));
  EXPECT_EQ(Outcome(work.status()), "OK");
  EXPECT_TRUE(cache_.Step(repeat));
  EXPECT_EQ(Outcome(repeat.status()), "OK");
  EXPECT_EQ(Counts().reserved, 1u);
}

TEST_F(LargeCallsTest, AnInsertPublishesSomePagesInEachStep) {
  const auto pages = Allocate(session_, 11'000);
  const auto tokens = Tokens(11'000);
  Inserting work = cache_.Start(InsertRequest{.session = session_,
                                              .ns = kNoNamespace,
                                              .tokens = tokens,
                                              .pages = pages});
  uint32_t steps = 1;
  for (uint32_t cached = 0; !cache_.Step(work); ++steps) {
    EXPECT_LE(Counts().evictable - cached, kStepInsertedPages);
    cached = Counts().evictable;
    EXPECT_THAT(cache_.CheckInvariants(), IsEmpty());
  }
  EXPECT_EQ(steps, 1u + 3 + 3);
  const auto result = work.Take();
  ASSERT_EQ(Outcome(result), "OK");
  EXPECT_EQ(result->existing_tokens, 0u);
  EXPECT_THAT(result->canonical_pages, IsEmpty());
  EXPECT_THAT(PagesOf(tokens), ElementsAreArray(pages));
  EXPECT_EQ(cache_.Stats().counters.inserts, 1u);
  // The returned handle names the end of the inserted prompt.
  EXPECT_EQ(cache_
                .Match({.session = {},
                        .ns = kNoNamespace,
                        .tokens = {},
                        .after = result->handle})
                ->matched_tokens,
            11'000u);
}

TEST_F(LargeCallsTest, AnInsertThatIsRefusedChangesNothing) {
  const auto foreign = Allocate(other_, 1);
  auto pages = Allocate(session_, 10'000);
  const auto tokens = Tokens(10'000);
  for (const auto& [last, outcome] :
       {std::pair{pages.front(), "DUPLICATE_PAGE"},
        std::pair{foreign.front(), "PAGE_NOT_OWNED"}}) {
    auto listed = pages;
    listed.back() = last;
    EXPECT_EQ(Outcome(Insert(tokens, listed)), outcome);
    EXPECT_EQ(Counts().reserved, 10'001u);
  }
  pages.pop_back();
  EXPECT_EQ(Outcome(Insert(tokens, pages)), "INVALID_ALIGNMENT");
  EXPECT_EQ(Counts().reserved, 10'001u);
}

TEST_F(LargeCallsTest, WhatIsCachedAlreadyIsKept) {
  const auto theirs = Allocate(session_, 5'000);
  ASSERT_EQ(Outcome(Insert(Tokens(5'000), theirs)), "OK");
  // Some of the pages are the cache's own, the rest are duplicates.
  auto pages = theirs;
  pages.resize(4'500);
  const auto own = Allocate(session_, 5'500);
  pages.insert(pages.end(), own.begin(), own.end());
  const auto extra = Allocate(session_, 1'000);
  const auto tokens = Tokens(10'000);
  const auto result = cache_.Insert({.session = session_,
                                     .ns = kNoNamespace,
                                     .tokens = tokens,
                                     .pages = pages,
                                     .free_pages = extra});
  ASSERT_EQ(Outcome(result), "OK");
  EXPECT_EQ(result->existing_tokens, 5'000u);
  EXPECT_THAT(result->canonical_pages, ElementsAreArray(theirs));
  EXPECT_EQ(result->freed_duplicates, 500u);
  EXPECT_EQ(Counts().reserved, 0u);
  EXPECT_EQ(Counts().evictable, 10'000u);
}

// The result names the page that the cache has, for every page of the prompt.
TEST_F(LargeCallsTest, WhatIsCachedMeanwhileIsKept) {
  const auto pages = Allocate(session_, 10'000);
  const auto theirs = Allocate(other_, 2'000);
  const auto tokens = Tokens(10'000);
  Inserting work = cache_.Start(InsertRequest{.session = session_,
                                              .ns = kNoNamespace,
                                              .tokens = tokens,
                                              .pages = pages});
  while (Counts().evictable == 0) EXPECT_FALSE(cache_.Step(work));
  ASSERT_EQ(Counts().evictable, kStepInsertedPages);
  auto longer = pages;
  longer.resize(kStepInsertedPages);
  longer.insert(longer.end(), theirs.begin(), theirs.end());
  const auto front = Tokens(kStepInsertedPages + 2'000);
  ASSERT_EQ(Outcome(cache_.Insert({.session = other_,
                                   .ns = kNoNamespace,
                                   .tokens = front,
                                   .pages = longer})),
            "OK");
  TakeSteps(work);
  const auto result = work.Take();
  ASSERT_EQ(Outcome(result), "OK");
  EXPECT_EQ(result->existing_tokens, kStepInsertedPages + 2'000);
  EXPECT_THAT(result->canonical_pages, ElementsAreArray(longer));
  EXPECT_EQ(result->freed_duplicates, 2'000u);
  EXPECT_EQ(Counts().reserved, 0u);
  EXPECT_EQ(PagesOf(tokens).size(), 10'000u);
}

TEST_F(LargeCallsTest, WhatFollowsAnEvictedPartIsFreed) {
  const auto pages = Allocate(session_, 10'000);
  const auto tokens = Tokens(10'000);
  Inserting work = cache_.Start(InsertRequest{.session = session_,
                                              .ns = kNoNamespace,
                                              .tokens = tokens,
                                              .pages = pages,
                                              .request_id = RequestId(9)});
  while (Counts().evictable == 0) EXPECT_FALSE(cache_.Step(work));
  EXPECT_EQ(cache_.Flush().evicted_pages, kStepInsertedPages);
  TakeSteps(work);
  EXPECT_EQ(Outcome(work.Take()), "OK");
  EXPECT_EQ(Counts().free, kPages);
}

TEST_F(LargeCallsTest, AMovingAnchorKeepsTheParts) {
  const auto prompt = Tokens(11'000);
  const auto match = cache_.Match(Admission(prompt, 11'000));
  ASSERT_EQ(Outcome(match), "OK");
  const auto first = std::span(match->reserved).first(10'000);
  Inserting work =
      cache_.Start(InsertRequest{.session = session_,
                                 .ns = kNoNamespace,
                                 .tokens = {},
                                 .pages = first,
                                 .anchor = match->lock,
                                 .lock_action = LockAction::kRelock,
                                 .prompt_tokens = 10'000});
  while (!cache_.Step(work)) {
    cache_.Flush();
    EXPECT_THAT(cache_.CheckInvariants(), IsEmpty());
  }
  ASSERT_EQ(Outcome(work.Take()), "OK");
  EXPECT_EQ(Counts().protected_, 10'000u);
  // The lock still holds the tokens after the inserted pages, and no others.
  const auto rest = std::span(match->reserved).subspan(10'000);
  const auto insert = [&](uint32_t prompt_tokens) {
    return cache_.Insert({.session = session_,
                          .ns = kNoNamespace,
                          .tokens = {},
                          .pages = rest,
                          .anchor = match->lock,
                          .lock_action = LockAction::kUnlock,
                          .prompt_tokens = prompt_tokens});
  };
  EXPECT_EQ(Outcome(insert(1'001)), "INVALID_FIELD");
  EXPECT_EQ(Outcome(insert(1'000)), "OK");
  EXPECT_THAT(PagesOf(prompt), ElementsAreArray(match->reserved));
  EXPECT_EQ(cache_.Stats().locks, 0u);
}

TEST_F(LargeCallsTest, AnAnchorThatIsReleasedMeanwhileGivesUpTheRest) {
  const auto prompt = Tokens(10'000);
  for (const LockAction action : {LockAction::kRelock, LockAction::kUnlock}) {
    const auto match = cache_.Match(Admission(prompt, 10'000));
    ASSERT_EQ(Outcome(match), "OK");
    Inserting work = cache_.Start(InsertRequest{.session = session_,
                                                .ns = kNoNamespace,
                                                .tokens = {},
                                                .pages = match->reserved,
                                                .anchor = match->lock,
                                                .lock_action = action,
                                                .prompt_tokens = 10'000});
    while (Counts().protected_ == 0) EXPECT_FALSE(cache_.Step(work));
    EXPECT_EQ(*cache_.ReleaseLocks(SessionNumber(1)), 1u);
    TakeSteps(work);
    EXPECT_EQ(Outcome(work.Take()),
              action == LockAction::kRelock ? "LOCK_UNKNOWN" : "OK");
    EXPECT_EQ(Counts().reserved, 0u);
    EXPECT_EQ(Counts().evictable, kStepInsertedPages);
    cache_.Flush();
  }
}

TEST_F(LargeCallsTest, AnInsertThatIsAbandonedEndsAllTheSame) {
  const auto pages = Allocate(session_, 10'000);
  auto tokens = Tokens(10'000);
  const InsertRequest request{.session = session_,
                              .ns = kNoNamespace,
                              .tokens = tokens,
                              .pages = pages,
                              .request_id = RequestId(4)};
  Inserting refused = cache_.Start(request);
  EXPECT_FALSE(cache_.Step(refused));
  EXPECT_TRUE(refused.Abandon());  // still before anything is published
  EXPECT_TRUE(cache_.Step(refused));
  EXPECT_EQ(Counts().reserved, 10'000u);

  Inserting work = cache_.Start(request);
  while (Counts().evictable == 0) EXPECT_FALSE(cache_.Step(work));
  EXPECT_TRUE(work.Abandon());
  const auto same = tokens;
  std::ranges::fill(tokens, 0);  // the caller reuses its memory
  TakeSteps(work);
  EXPECT_THAT(PagesOf(same), ElementsAreArray(pages));
  EXPECT_TRUE(cache_.Insert(request)->is_repeat);
}

// Inserts the same prompt in a namespace of pairs, once in one large insert and
// once in small ones.
TEST_F(LargeCallsTest, PairsOfTokensGoOnAcrossParts) {
  NamespaceKey bigram;
  bigram.bigram = true;
  const auto tokens = Tokens(9'001);
  const auto pages = cache_.Allocate({session_, bigram, 9'000})->pages;
  ASSERT_EQ(Outcome(cache_.Insert({.session = session_,
                                   .ns = bigram,
                                   .tokens = tokens,
                                   .pages = pages})),
            "OK");
  EXPECT_THAT(
      cache_.Match({.session = {}, .ns = bigram, .tokens = tokens})->pages,
      ElementsAreArray(pages));
}

}  // namespace
}  // namespace pando
