// Tests how traces are read, what an unlimited cache would hit, and which
// tokens the blocks of a trace get.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "replay/trace.h"

namespace pando::replay {
namespace {

const std::filesystem::path kSource = SOURCE_FOLDER;

class TraceFileTest : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }

  absl::StatusOr<Trace> Read(const std::string& text) {
    std::ofstream(path_) << text;
    return ReadTrace(path_, 0);
  }

  const std::string path_ =
      testing::TempDir() + "trace-" + std::to_string(getpid());
};

TEST_F(TraceFileTest, ReadsOneRequestALine) {
  const auto trace = Read(
      R"({"timestamp": 0, "input_length": 600, "output_length": 7, "hash_ids": [0, 3]})"
      "\n"
      R"({"timestamp": 5, "input_length": 1, "output_length": 2, "hash_ids": [4]})");
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->block_tokens, 512u);
  ASSERT_EQ(trace->requests.size(), 2u);
  const TraceRequest& first = trace->requests[0];
  EXPECT_EQ(first.input_tokens, 600u);
  EXPECT_EQ(first.output_tokens, 7u);
  EXPECT_EQ(first.block_ids, (std::vector<uint32_t>{0, 3}));
}

TEST_F(TraceFileTest, ReadsOneConversationALineAndMergesThemByTime) {
  const auto trace =
      Read(R"({"id": "a", "block": 64, "requests": [)"
           R"({"t": 0.0, "in": 130, "out": 7, "h": [[1, 2]]},)"
           R"({"t": 61.5, "in": 256, "out": 8, "h": [[1, 1], [3, 3]]}]})"
           "\n"
           R"({"id": "b", "block": 64, "requests": [)"
           R"({"t": 1.0, "in": 64, "out": 9, "h": [[1, 1]], "agent": "x"},)"
           R"({"t": 1.5, "in": 65, "out": 10, "h": [[1, 1]]}]})");
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->block_tokens, 64u);
  ASSERT_EQ(trace->requests.size(), 4u);
  std::vector<uint32_t> outputs;
  for (const TraceRequest& request : trace->requests) {
    outputs.push_back(request.output_tokens);
  }
  EXPECT_EQ(outputs, (std::vector<uint32_t>{7, 9, 8, 10}));
  // A block without an id gets one, and the ids of the second conversation
  // differ.
  EXPECT_EQ(trace->requests[0].block_ids, (std::vector<uint32_t>{1, 2, 6}));
  EXPECT_EQ(trace->requests[1].block_ids, (std::vector<uint32_t>{8}));
  EXPECT_EQ(trace->requests[2].block_ids, (std::vector<uint32_t>{1, 3, 4, 5}));
  EXPECT_EQ(trace->requests[3].block_ids, (std::vector<uint32_t>{8, 9}));
}

TEST_F(TraceFileTest, RunsMustCoverTheWholeBlocks) {
  EXPECT_TRUE(absl::IsInvalidArgument(
      Read(
          R"({"block": 64, "requests": [{"t": 0, "in": 130, "out": 1, "h": [[1, 3]]}]})")
          .status()));
}

TEST_F(TraceFileTest, BlocksAreOfOneSize) {
  EXPECT_TRUE(absl::IsInvalidArgument(Read(R"({"block": 64, "requests": []})"
                                           "\n"
                                           R"({"block": 16, "requests": []})")
                                          .status()));
}

TEST_F(TraceFileTest, AnErrorNamesTheLine) {
  const auto trace =
      Read(R"({"input_length": 1, "output_length": 2, "hash_ids": [4]})"
           "\nnonsense\n");
  EXPECT_TRUE(absl::IsInvalidArgument(trace.status()));
  EXPECT_NE(trace.status().message().find(":2:"), std::string::npos)
      << trace.status();
}

TEST_F(TraceFileTest, BlocksMustCoverTheInput) {
  EXPECT_TRUE(absl::IsInvalidArgument(
      Read(R"({"input_length": 513, "output_length": 2, "hash_ids": [4]})")
          .status()));
}

TEST(TraceTest, AFileThatIsNotThereIsAnError) {
  EXPECT_TRUE(absl::IsNotFound(ReadTrace("/nowhere/trace", 0).status()));
}

Trace ThreeRequests() {
  return {.block_tokens = 512,
          .requests = {{.input_tokens = 1100, .block_ids = {1, 2, 3}},
                       {.input_tokens = 1100, .block_ids = {1, 9, 3}},
                       {.input_tokens = 600, .block_ids = {1, 2}}}};
}

TEST(TraceTest, OnlyTheLongestPrefixSeenBeforeIsHit) {
  const HitTokens hits = UnlimitedCacheHits(ThreeRequests());
  EXPECT_EQ(hits.hit, 512u + 600u);
  EXPECT_EQ(hits.input, 2800u);
}

TEST(TraceTest, AnLruOfBlocksForgetsTheEndOfTheOldestRequestFirst) {
  // There is room for three whole blocks. The third block of a request has 76
  // tokens.
  EXPECT_EQ(BlockLruHits(ThreeRequests(), 3 * 512).hit, 512u + 512u);
  EXPECT_EQ(BlockLruHits(ThreeRequests(), 3 * 512 + 76).hit, 512u + 600u);
}

TEST(TraceTest, ABlockIdAlwaysGivesTheSameTokens) {
  const Trace trace{.block_tokens = 512};
  std::vector<Token> a, b;
  MakeTokens(trace, {.input_tokens = 1024, .block_ids = {5, 6}}, &a);
  MakeTokens(trace, {.input_tokens = 600, .block_ids = {5, 6}}, &b);
  EXPECT_EQ(a.size(), 1024u);
  EXPECT_EQ(b, std::vector<Token>(a.begin(), a.begin() + 600));
  // splitmix64 of zero is the first output of its reference generator.
  MakeTokens(trace, {.input_tokens = 1, .block_ids = {0}}, &a);
  EXPECT_EQ(a, std::vector<Token>{0xe220a839});
}

TEST(TraceTest, TheConversationExcerptHoldsWhatItsReadmeSays) {
  const auto trace =
      ReadTrace(kSource / "bench/data/conversation_excerpt.jsonl", 0);
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->requests.size(), 3000u);
  const HitTokens hits = UnlimitedCacheHits(*trace);
  EXPECT_EQ(hits.input, 40'550'180u);
  EXPECT_EQ(hits.hit, 12'964'863u);
}

TEST(TraceTest, TheAgenticExcerptHoldsWhatItsReadmeSays) {
  const auto trace = ReadTrace(kSource / "bench/data/agentic_excerpt.jsonl", 0);
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->requests.size(), 1847u);
  const HitTokens hits = UnlimitedCacheHits(*trace);
  EXPECT_EQ(hits.input, 272'120'822u);
  EXPECT_NEAR(hits.Rate(), 0.9575, 0.00005);
}

// The expected rates were published with the whole conversation trace.
TEST(TraceTest, TheWholeConversationTraceHitsWhatIsKnownOfIt) {
  const auto path = kSource / "../shared/traces/mooncake_conversation.jsonl.gz";
  if (!std::filesystem::exists(path)) {
    GTEST_SKIP() << "the whole trace is not at " << path;
  }
  const auto trace = ReadTrace(path, 0);
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->requests.size(), 12'031u);
  EXPECT_NEAR(UnlimitedCacheHits(*trace).Rate(), 0.3736, 0.00005);
  EXPECT_NEAR(BlockLruHits(*trace, 1'000'000).Rate(), 0.0552, 0.00006);
  EXPECT_NEAR(BlockLruHits(*trace, 5'000'000).Rate(), 0.2155, 0.00006);
  EXPECT_NEAR(BlockLruHits(*trace, 20'000'000).Rate(), 0.3583, 0.00006);
}

TEST(TraceTest, APromptHasEndedIfNoLaterOneHasItsLastWholeBlock) {
  const Trace trace{.block_tokens = 4,
                    .requests = {{.input_tokens = 6, .block_ids = {1, 2}},
                                 {.input_tokens = 12, .block_ids = {1, 3, 4}},
                                 {.input_tokens = 3, .block_ids = {5}},
                                 {.input_tokens = 9, .block_ids = {1, 3, 6}},
                                 {.input_tokens = 4, .block_ids = {1}}}};
  EXPECT_EQ(FindEnds(trace),
            (std::vector<bool>{false, true, true, true, true}));
}

}  // namespace
}  // namespace pando::replay
