// Compares the hits of the cache on recorded traces with those of an LRU of
// blocks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <utility>

#include "replay/core_calls.h"
#include "replay/report.h"
#include "replay/worker.h"

namespace pando::replay {
namespace {

const std::filesystem::path kSource = SOURCE_FOLDER;
constexpr uint32_t kPageTokens = 16;
// The tolerance is a tenth of a percentage point.
constexpr double kTolerance = 0.001;

// Reads the first requests of an excerpt; 0 means all of them.
Trace Excerpt(const char* name, size_t requests) {
  absl::StatusOr<Trace> trace =
      ReadTrace(kSource / "bench/data" / name, requests);
  EXPECT_TRUE(trace.ok()) << trace.status();
  return trace.ok() ? *std::move(trace) : Trace();
}

Report Replay(const Trace& trace, uint32_t pool_tokens,
              const WorkerOptions& options,
              EvictionPolicyKind policy = EvictionPolicyKind::kLru) {
  CoreCalls calls({.page_tokens = kPageTokens,
                   .capacity_pages = pool_tokens / kPageTokens + 1,
                   .eviction_policy = policy});
  const absl::StatusOr<WorkerResult> result =
      Serve(calls, nullptr, trace, options);
  EXPECT_TRUE(result.ok()) << result.status();
  Report report;
  if (!result.ok()) return report;
  AddResults({*result}, &report);
  AddAccounts(Accounts(), calls.TakeAccounts(), &report);
  EXPECT_THAT(report.invariant_violations, testing::IsEmpty());
  EXPECT_THAT(report.problems, testing::IsEmpty());
  return report;
}

TEST(ReplayHitRateTest, LruOfAConversationTraceIsTheLruOfItsBlocks) {
  const Trace trace = Excerpt("conversation_excerpt.jsonl", 0);
  for (const uint32_t tokens : {1'000'000, 5'000'000}) {
    SCOPED_TRACE(tokens);
    const Report report = Replay(trace, tokens, {});
    EXPECT_GT(report.evicted_pages, 0u);
    EXPECT_NEAR(report.hits.Rate(), BlockLruHits(trace, tokens).Rate(),
                kTolerance);
  }
}

TEST(ReplayHitRateTest, LruOfAnAgentTraceIsTheLruOfItsBlocks) {
  const Trace trace = Excerpt("agentic_excerpt.jsonl", 500);
  const Report report = Replay(trace, 2'000'000, {});
  EXPECT_GT(report.evicted_pages, 0u);
  EXPECT_NEAR(report.hits.Rate(), BlockLruHits(trace, 2'000'000).Rate(),
              kTolerance);
}

TEST(ReplayHitRateTest, HandlesHitTheSameTokensAndSendFewer) {
  const Trace trace = Excerpt("agentic_excerpt.jsonl", 500);
  const Report whole = Replay(trace, 2'000'000, {});
  const Report handles = Replay(trace, 2'000'000, {.use_handles = true});
  EXPECT_EQ(handles.hits.hit, whole.hits.hit);
  EXPECT_EQ(handles.evicted_pages, whole.evicted_pages);
  EXPECT_EQ(whole.totals.sent_tokens, whole.totals.input_tokens);
  EXPECT_GT(handles.totals.handles, handles.totals.handles_gone);
  EXPECT_LT(handles.totals.sent_tokens, whole.totals.sent_tokens / 5);
}

TEST(ReplayHitRateTest, ReuseIsToldTheLengthOfOutputs) {
  Trace trace = Excerpt("agentic_excerpt.jsonl", 500);
  const auto hits = [&] {
    return Replay(trace, 500'000, {}, EvictionPolicyKind::kReuse).hits.hit;
  };
  const uint64_t told = hits();
  for (TraceRequest& request : trace.requests) request.output_tokens = 0;
  EXPECT_NE(hits(), told);
}

TEST(ReplayHitRateTest, PromptsThatHaveEndedMakeRoomForThoseThatComeBack) {
  const Trace trace = Excerpt("conversation_excerpt.jsonl", 1000);
  const Report silent = Replay(trace, 500'000, {});
  const Report told = Replay(trace, 500'000, {.tell_ends = true});
  EXPECT_GT(told.hits.hit, 2 * silent.hits.hit);
}

TEST(ReplayHitRateTest, APoolThatIsTooSmallRefusesAndTheAccountsAddUp) {
  const Trace trace = Excerpt("conversation_excerpt.jsonl", 200);
  const Report report = Replay(trace, 20'000, {});
  EXPECT_GT(report.totals.exhausted, 0u);
  EXPECT_LT(report.totals.exhausted, report.requests);
}

}  // namespace
}  // namespace pando::replay
