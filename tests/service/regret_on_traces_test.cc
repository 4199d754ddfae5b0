// Compares the estimated hits of an unlimited cache with an exact model, on
// recorded traces.
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "replay/core_calls.h"
#include "replay/trace.h"
#include "replay/worker.h"
#include "service/metrics/regret_index.h"

namespace pando {
namespace {

const std::filesystem::path kSource = SOURCE_FOLDER;

// A cache with an index that learns of inserts and evictions after each
// request.
class FollowedCalls final : public replay::CoreCalls {
 public:
  FollowedCalls(const PrefixCache::Options& options, size_t max_samples)
      : CoreCalls(options),
        index_(options.capacity_pages, options.page_tokens, max_samples) {
    cache().TakeChurn(events_);  // starts the log of changes
  }

  absl::StatusOr<replay::Handle> Finish(bool has_ended) override {
    auto end = CoreCalls::Finish(has_ended);
    cache().TakeChurn(events_);
    for (const RawEvent& event : events_) {
      index_.Apply(event, absl::UnixEpoch());
    }
    return end;
  }

  // Returns the estimated share of the requested tokens that an unlimited cache
  // would have found.
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
  size_t requests;  // how many requests of the trace are served; 0: all
  size_t max_samples;
  bool use_handles;
  double tolerance;
};

// Serves the trace, and compares the estimate at its end with the exact rate.
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

// Without sampling, the estimate and the exact model differ only in the last
// page of each prompt, because the model counts blocks of the trace.
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

}  // namespace
}  // namespace pando
