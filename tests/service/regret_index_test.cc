// The estimated hits of an unlimited cache, against an exact model of the
// recorded trace, and on small cases.
#include "service/metrics/regret_index.h"

#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "replay/core_calls.h"
#include "replay/trace.h"
#include "replay/worker.h"

namespace pando {
namespace {

const std::filesystem::path kSource = SOURCE_FOLDER;

// A cache whose comings and goings are followed after each request.
class FollowedCalls final : public replay::CoreCalls {
 public:
  FollowedCalls(const PrefixCache::Options& options, size_t max_samples)
      : CoreCalls(options),
        index_(options.capacity_pages, options.page_tokens, max_samples) {
    cache().TakeChurn(events_);  // from now on they are logged
  }

  absl::StatusOr<replay::Handle> Finish(bool has_ended) override {
    auto end = CoreCalls::Finish(has_ended);
    cache().TakeChurn(events_);
    for (const RawEvent& event : events_) {
      index_.Apply(event, absl::UnixEpoch());
    }
    return end;
  }

  // The share of the tokens asked for that an unlimited cache would have found.
  double InfiniteHitRate() {
    const CacheCounters counters = cache().Stats().counters;
    const uint64_t refetched =
        index_.figures().refetched_pages * cache().page_tokens();
    return static_cast<double>(counters.hit_tokens + refetched) /
           static_cast<double>(counters.query_tokens);
  }
  const RegretIndex& index() const { return index_; }

 private:
  RegretIndex index_;
  std::vector<RawEvent> events_;
};

struct Case {
  std::string name;
  size_t requests;  // of the trace; 0: all
  size_t max_samples;
  bool use_handles;
  double tolerance;
};

// Serves the trace, and compares what it says at the end.
void ExpectEstimateOfTrace(const std::filesystem::path& path,
                           uint32_t pool_tokens, const Case& c) {
  constexpr uint32_t kPageTokens = 16;
  const auto trace = replay::ReadTrace(path, c.requests);
  ASSERT_TRUE(trace.ok()) << trace.status();
  FollowedCalls calls({.page_tokens = kPageTokens,
                       .capacity_pages = pool_tokens / kPageTokens + 1},
                      c.max_samples);
  ASSERT_TRUE(
      replay::Serve(calls, nullptr, *trace, {.use_handles = c.use_handles})
          .ok());
  const double exact = UnlimitedCacheHits(*trace).Rate();
  const double estimate = calls.InfiniteHitRate();
  std::cout << "exact " << exact << ", estimate " << estimate << '\n';
  EXPECT_NEAR(estimate, exact, c.tolerance);
  EXPECT_LE(calls.index().samples(), c.max_samples);
}

class RegretOnTraceTest : public testing::TestWithParam<Case> {};

TEST_P(RegretOnTraceTest, TheEstimateIsNearTheExactRate) {
  ExpectEstimateOfTrace(kSource / "bench/data/conversation_excerpt.jsonl",
                        1'000'000, GetParam());
}

// Without sampling only the last page of each prompt is seen otherwise than by
// the blocks of the trace.
INSTANTIATE_TEST_SUITE_P(
    Excerpt, RegretOnTraceTest,
    testing::Values(Case{"WithoutSampling", 600, SIZE_MAX, false, 0.002},
                    Case{"AsServed", 0, RegretIndex::kMaxSamples, false, 0.02},
                    Case{"WithHandles", 0, RegretIndex::kMaxSamples, true,
                         0.02}),
    [](const auto& test) { return test.param.name; });

TEST(RegretOnWholeTraceTest, TheEstimateIsNearTheExactRate) {
  const auto path = kSource / "../shared/traces/mooncake_conversation.jsonl.gz";
  if (!std::filesystem::exists(path)) {
    GTEST_SKIP() << "the whole trace is not at " << path;
  }
  ExpectEstimateOfTrace(path, 5'000'000,
                        {"Whole", 0, RegretIndex::kMaxSamples, false, 0.02});
}

// A small cache whose comings and goings are followed at once.
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
  index_.emplace(kPages, kPageTokens);  // it did not see them
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
