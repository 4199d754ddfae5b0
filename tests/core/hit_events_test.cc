#include <string_view>
#include <variant>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/cache_fixture.h"

namespace pando {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr uint32_t kPageTokens = 4;
constexpr uint32_t kPages = 16;

// A test of the events that report hits. The parameter is the number of the
// first hit of a page that the cache reports.
class HitEventsTest : public testing::TestWithParam<uint32_t> {
 protected:
  HitEventsTest() {
    cache_.OpenSession(session_, "one");
    cache_.StartEvents();
  }

  void Insert(std::string_view letters) {
    const auto tokens = SpellTokens(letters, kPageTokens);
    const auto pages = Allocate(letters);
    EXPECT_EQ(Outcome(cache_.Insert({.session = session_,
                                     .ns = kNoNamespace,
                                     .tokens = tokens,
                                     .pages = pages})),
              "OK");
  }
  // Inserts a prompt in chunks of one page.
  void InsertInChunks(std::string_view letters) {
    const auto lock =
        cache_.Lock({.session = session_, .ns = kNoNamespace, .tokens = {}});
    ASSERT_EQ(Outcome(lock), "OK");
    for (size_t i = 0; i < letters.size(); ++i) {
      const bool is_last = i + 1 == letters.size();
      const auto tokens = SpellTokens(letters.substr(i, 1), kPageTokens);
      const auto pages = Allocate(letters.substr(i, 1));
      EXPECT_EQ(Outcome(cache_.Insert(
                    {.session = session_,
                     .ns = kNoNamespace,
                     .tokens = tokens,
                     .pages = pages,
                     .anchor = lock->lock,
                     .lock_action =
                         is_last ? LockAction::kUnlock : LockAction::kRelock})),
                "OK");
    }
  }
  PageId LastPageOf(std::string_view letters) {
    const auto tokens = SpellTokens(letters, kPageTokens);
    const auto match = cache_.Match(
        {.session = session_, .ns = kNoNamespace, .tokens = tokens});
    EXPECT_EQ(Outcome(match), "OK");
    return match->pages.back();
  }
  // Takes all events and returns the last page of each hit.
  std::vector<PageId> TakeHits() {
    std::vector<PageId> hits;
    for (bool is_all = false; !is_all;) {
      std::vector<RawEvent> events;
      is_all = cache_.TakeEvents(events);
      for (const RawEvent& event : events) {
        if (const auto* hit = std::get_if<PagesHit>(&event)) {
          hits.push_back(hit->last);
        }
      }
    }
    return hits;
  }

  PrefixCache cache_{{.page_tokens = kPageTokens,
                      .capacity_pages = kPages,
                      .first_told_hit = GetParam()}};
  const SessionId session_{1};

 private:
  std::vector<PageId> Allocate(std::string_view letters) {
    const auto pages =
        cache_.Allocate({.session = session_,
                         .ns = kNoNamespace,
                         .pages = static_cast<uint32_t>(letters.size())});
    EXPECT_EQ(Outcome(pages), "OK");
    return pages->pages;
  }
};

TEST_P(HitEventsTest, TellOfHitsFromTheOneOnThatWasAskedFor) {
  TakeHits();
  Insert("abc");
  for (uint32_t hit = 1; hit < GetParam(); ++hit) {
    Insert("abc");
    EXPECT_THAT(TakeHits(), IsEmpty()) << hit;
  }
  for (int hit = 0; hit < 3; ++hit) {
    Insert("abc");
    EXPECT_THAT(TakeHits(), ElementsAre(LastPageOf("abc"))) << hit;
  }
}

TEST_P(HitEventsTest, NameThePartOfAPromptThatWasHitOften) {
  TakeHits();
  Insert("ab");
  for (uint32_t hit = 0; hit < GetParam(); ++hit) Insert("ab");
  TakeHits();
  Insert("abcd");
  EXPECT_THAT(TakeHits(), ElementsAre(LastPageOf("ab")));
  Insert("xy");
  EXPECT_THAT(TakeHits(), IsEmpty());
}

TEST_P(HitEventsTest, MatchesAndChunksAreNoHits) {
  TakeHits();
  InsertInChunks("abcd");
  for (int i = 0; i < 4; ++i) LastPageOf("abcd");
  EXPECT_THAT(TakeHits(), IsEmpty());
}

TEST_P(HitEventsTest, WhatWasHitBeforeAnybodyListenedIsToldOfLater) {
  Insert("ab");
  for (uint32_t hit = 0; hit < GetParam(); ++hit) Insert("ab");
  EXPECT_THAT(TakeHits(), IsEmpty());
  Insert("ab");
  EXPECT_THAT(TakeHits(), ElementsAre(LastPageOf("ab")));
}

INSTANTIATE_TEST_SUITE_P(Hits, HitEventsTest, testing::Values(1, 2));

TEST(NoHitEventsTest, NobodyIsToldWhoDidNotAsk) {
  const SessionId session(1);
  PrefixCache cache({.page_tokens = kPageTokens, .capacity_pages = kPages});
  cache.OpenSession(session, "one");
  cache.StartEvents();
  const auto tokens = SpellTokens("ab", kPageTokens);
  std::vector<RawEvent> events;
  for (int i = 0; i < 4; ++i) {
    const auto pages =
        cache.Allocate({.session = session, .ns = kNoNamespace, .pages = 2});
    ASSERT_EQ(Outcome(pages), "OK");
    ASSERT_EQ(Outcome(cache.Insert({.session = session,
                                    .ns = kNoNamespace,
                                    .tokens = tokens,
                                    .pages = pages->pages})),
              "OK");
    while (!cache.TakeEvents(events)) continue;
    for (const RawEvent& event : events) {
      EXPECT_FALSE(std::holds_alternative<PagesHit>(event));
    }
  }
}

}  // namespace
}  // namespace pando
