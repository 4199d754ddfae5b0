// Tests the estimated hits of an unlimited cache on small cases.
#include "service/metrics/regret_index.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "core/prefix_cache.h"
#include "gtest/gtest.h"

namespace pando {
namespace {

// A small cache, and an index that learns of each insert and eviction at once.
class RegretIndexTest : public testing::Test {
 protected:
  static constexpr uint32_t kPageTokens = 4;
  static constexpr uint32_t kPages = 16;

  RegretIndexTest() {
    cache_.OpenSession(session_, "");
    Follow();
  }

  void Publish(const std::vector<Token>& tokens, const NamespaceKey& ns = {}) {
    const auto pages = cache_.Allocate(
        {session_, ns, static_cast<uint32_t>(tokens.size() / kPageTokens)});
    ASSERT_TRUE(pages.ok());
    EXPECT_TRUE(cache_
                    .Insert({.session = session_,
                             .ns = ns,
                             .tokens = tokens,
                             .pages = pages->pages})
                    .ok());
    Follow();
  }
  void Evict(uint32_t pages) {
    EXPECT_EQ(cache_.Evict(pages), pages);
    Follow();
  }
  void Follow() {
    std::vector<RawEvent> events;
    cache_.TakeChurn(events);
    for (const RawEvent& event : events) index_->Apply(event, now_);
  }
  uint64_t Refetched() { return index_->figures().refetched_pages; }

  const SessionId session_{1};
  const std::vector<Token> prompt_ = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  absl::Time now_ = absl::UnixEpoch();
  PrefixCache cache_{{.page_tokens = kPageTokens, .capacity_pages = kPages}};
  std::optional<RegretIndex> index_{std::in_place, kPages, kPageTokens};
};

TEST_F(RegretIndexTest, WhatIsInsertedAgainAfterItsEvictionIsCountedOnce) {
  Publish(prompt_);
  Evict(2);
  now_ += absl::Seconds(7);
  Publish(prompt_);
  EXPECT_EQ(Refetched(), 2u);
  EXPECT_EQ(index_->figures().refetch_seconds.View().sum, 2 * 7.0);
  Publish(prompt_);
  EXPECT_EQ(Refetched(), 2u);
  Evict(3);
  Publish(prompt_);
  EXPECT_EQ(Refetched(), 5u);
}

TEST_F(RegretIndexTest, TheSameTokensElsewhereAreAnotherPage) {
  Publish(prompt_);
  Evict(3);
  Publish({5, 6, 7, 8});
  NamespaceKey other;
  other.extra_key = "other";
  Publish(prompt_, other);
  EXPECT_EQ(Refetched(), 0u);
}

TEST_F(RegretIndexTest, WhatIsFlushedIsNotMissed) {
  Publish(prompt_);
  cache_.Flush();
  Follow();
  Publish(prompt_);
  EXPECT_EQ(Refetched(), 0u);
}

TEST_F(RegretIndexTest, PairsOfABigramNamespaceAreFollowed) {
  NamespaceKey pairs;
  pairs.bigram = true;
  const std::vector<Token> tokens = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  Publish(tokens, pairs);
  Evict(2);
  Publish(tokens, pairs);
  EXPECT_EQ(Refetched(), 2u);
}

TEST_F(RegretIndexTest, WhatFollowsUnknownPagesIsNotCounted) {
  Publish(prompt_);
  index_.emplace(kPages, kPageTokens);  // the new index did not see the pages
  const std::vector<Token> longer = {1, 2,  3,  4,  5,  6,  7,  8,
                                     9, 10, 11, 12, 13, 14, 15, 16};
  Publish(longer);
  Evict(1);
  Publish(longer);
  EXPECT_EQ(Refetched(), 0u);
}

TEST_F(RegretIndexTest, ASampleThatIsFullIsHalvedAndCountsTwice) {
  constexpr size_t kMaxSamples = 4;
  index_.emplace(kPages, kPageTokens, kMaxSamples);
  EXPECT_EQ(index_->weight(), 1u);
  for (Token i = 1; i <= 100; ++i) {
    Publish({i, i, i, i});
    Evict(1);
    EXPECT_LE(index_->samples(), kMaxSamples);
  }
  const uint64_t weight = index_->weight();
  EXPECT_GT(weight, 1u);
  const uint64_t remembered = index_->samples();
  for (Token i = 1; i <= 100; ++i) {
    Publish({i, i, i, i});
    cache_.Flush();
    Follow();
  }
  EXPECT_EQ(Refetched(), remembered * weight);
}

}  // namespace
}  // namespace pando
