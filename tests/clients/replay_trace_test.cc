// Reading traces, what an unlimited cache would hit, and the tokens.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "bench/replay/trace.h"

namespace pando::replay {
namespace {

const std::filesystem::path kSource = SOURCE_FOLDER;

class TraceFileTest : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }

  absl::StatusOr<std::vector<TraceRequest>> Read(const std::string& text) {
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
  ASSERT_EQ(trace->size(), 2u);
  EXPECT_EQ((*trace)[0].input_tokens, 600u);
  EXPECT_EQ((*trace)[0].output_tokens, 7u);
  EXPECT_EQ((*trace)[0].block_ids, (std::vector<uint32_t>{0, 3}));
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

TEST(TraceTest, OnlyTheLongestPrefixSeenBeforeIsHit) {
  const std::vector<TraceRequest> trace = {
      {.input_tokens = 1100, .block_ids = {1, 2, 3}},
      {.input_tokens = 1100, .block_ids = {1, 9, 3}},
      {.input_tokens = 600, .block_ids = {1, 2}},
  };
  const HitTokens hits = UnlimitedCacheHits(trace);
  EXPECT_EQ(hits.hit, 512u + 600u);
  EXPECT_EQ(hits.input, 2800u);
}

TEST(TraceTest, ABlockIdAlwaysGivesTheSameTokens) {
  std::vector<uint32_t> a, b;
  MakeTokens({.input_tokens = 1024, .block_ids = {5, 6}}, &a);
  MakeTokens({.input_tokens = 600, .block_ids = {5, 6}}, &b);
  EXPECT_EQ(a.size(), 1024u);
  EXPECT_EQ(b, std::vector<uint32_t>(a.begin(), a.begin() + 600));
  // splitmix64 of zero is the first output of its reference generator.
  MakeTokens({.input_tokens = 1, .block_ids = {0}}, &a);
  EXPECT_EQ(a, std::vector<uint32_t>{0xe220a839});
}

TEST(TraceTest, TheExcerptHoldsWhatItsReadmeSays) {
  const auto trace =
      ReadTrace(kSource / "bench/data/conversation_excerpt.jsonl", 0);
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->size(), 3000u);
  const HitTokens hits = UnlimitedCacheHits(*trace);
  EXPECT_EQ(hits.input, 40'550'180u);
  EXPECT_EQ(hits.hit, 12'964'863u);
}

TEST(TraceTest, TheWholeTraceHitsAtMost37Point36Percent) {
  const auto path = kSource / "../shared/traces/mooncake_conversation.jsonl.gz";
  if (!std::filesystem::exists(path)) {
    GTEST_SKIP() << "the whole trace is not at " << path;
  }
  const auto trace = ReadTrace(path, 0);
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->size(), 12'031u);
  EXPECT_NEAR(UnlimitedCacheHits(*trace).Rate(), 0.3736, 0.00005);
}

}  // namespace
}  // namespace pando::replay
