#include "events/routers/kv_event_batch.h"

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pando {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

constexpr BlockId kLargeId = 0xfedc'ba98'7654'3210;
const absl::Time kNow = absl::FromUnixMillis(1'500);

const std::vector<BlockId> kIds = {5, kLargeId};
const std::vector<Token> kTokens = {1, 200, 70'000, 4'294'967'295};

StoredBlocks TwoBlocks() {
  return {.ids = kIds,
          .parent = 7,
          .tokens = kTokens,
          .block_tokens = 2,
          .lora_name = "adapter"};
}

Json Decode(const std::string& payload) { return Json::from_msgpack(payload); }

// Returns the only event of a batch.
Json EventOf(KvEventBatch& batch) { return Decode(batch.Take(kNow))[1][0]; }

TEST(KvEventBatchTest, ABatchIsATimeItsEventsAndARank) {
  KvEventBatch batch(KvEventForm::kMap);
  batch.AddCleared();
  batch.AddRemoved(KvMedium::kGpu, kIds);
  const Json decoded = Decode(batch.Take(kNow));
  ASSERT_EQ(decoded.size(), 3);
  EXPECT_EQ(decoded[0], 1.5);
  EXPECT_EQ(decoded[1].size(), 2);
  EXPECT_EQ(decoded[2], 0);
}

TEST(KvEventBatchTest, MapsHaveEveryFieldByItsName) {
  KvEventBatch batch(KvEventForm::kMap);
  batch.AddStored(TwoBlocks());
  batch.AddRemoved(KvMedium::kGpu, kIds);
  batch.AddCleared();
  EXPECT_EQ(Decode(batch.Take(kNow))[1],
            Json::parse(absl::StrCat(R"([
    {"type": "BlockStored", "block_hashes": [5, )",
                                     kLargeId, R"(],
     "parent_block_hash": 7, "token_ids": [1, 200, 70000, 4294967295],
     "block_size": 2, "lora_id": null, "medium": "GPU",
     "lora_name": "adapter"},
    {"type": "BlockRemoved", "block_hashes": [5, )",
                                     kLargeId, R"(],
     "medium": "GPU"},
    {"type": "AllBlocksCleared"}])")));
}

TEST(KvEventBatchTest, ArraysHaveTheSameFieldsInTheOrderOfTheEngines) {
  KvEventBatch batch(KvEventForm::kArray);
  batch.AddStored(TwoBlocks());
  batch.AddRemoved(KvMedium::kGpu, kIds);
  batch.AddCleared();
  EXPECT_EQ(
      Decode(batch.Take(kNow))[1],
      Json::parse(absl::StrCat(
          R"([["BlockStored", [5, )", kLargeId,
          R"(], 7, [1, 200, 70000, 4294967295], 2, null, "GPU", "adapter"],
                    ["BlockRemoved", [5, )",
          kLargeId, R"(], "GPU"], ["AllBlocksCleared"]])")));
}

TEST(KvEventBatchTest, WhatIsNotThereIsNilAndNotLeftOut) {
  KvEventBatch batch(KvEventForm::kMap);
  batch.AddStored({.ids = kIds, .tokens = kTokens, .block_tokens = 2});
  const Json event = EventOf(batch);
  EXPECT_TRUE(event.at("parent_block_hash").is_null());
  EXPECT_TRUE(event.at("lora_name").is_null());
  EXPECT_FALSE(event.contains("cache_salt"));
}

TEST(KvEventBatchTest, TheMediumIsInTheWordsOfVllm) {
  for (const auto& [medium, word] :
       {std::pair{KvMedium::kGpu, "GPU"}, std::pair{KvMedium::kCpu, "CPU"},
        std::pair{KvMedium::kStorage, "STORAGE"}}) {
    KvEventBatch batch(KvEventForm::kMap);
    StoredBlocks blocks = TwoBlocks();
    blocks.medium = medium;
    batch.AddStored(blocks);
    EXPECT_EQ(EventOf(batch).at("medium"), word);
    batch.AddRemoved(medium, kIds);
    EXPECT_EQ(EventOf(batch).at("medium"), word);
  }
}

TEST(KvEventBatchTest, ASaltIsAFieldOfItsOwn) {
  KvEventBatch batch(KvEventForm::kMap);
  StoredBlocks blocks = TwoBlocks();
  blocks.cache_salt = "tenant";
  batch.AddStored(blocks);
  EXPECT_EQ(EventOf(batch).at("cache_salt"), "tenant");
}

TEST(KvEventBatchTest, PairsAreWrittenAsPairs) {
  KvEventBatch batch(KvEventForm::kMap);
  const std::vector<Token> tokens = {1, 2, 3};
  batch.AddStored({.ids = {kIds.data(), 1},
                   .tokens = tokens,
                   .block_tokens = 2,
                   .are_pairs = true});
  EXPECT_EQ(EventOf(batch).at("token_ids"), Json::parse("[[1, 2], [2, 3]]"));
}

// llm-d treats an integer of another width as an error.
TEST(KvEventBatchTest, SmallIdsHaveAllTheirBytes) {
  const std::string five("\xcf\0\0\0\0\0\0\0\5", 9);
  const std::string seven("\xcf\0\0\0\0\0\0\0\7", 9);
  KvEventBatch batch(KvEventForm::kArray);
  batch.AddStored(TwoBlocks());
  EXPECT_THAT(batch.Take(kNow),
              testing::AllOf(HasSubstr(five), HasSubstr(seven)));
  batch.AddRemoved(KvMedium::kGpu, kIds);
  EXPECT_THAT(batch.Take(kNow), HasSubstr(five));
}

TEST(KvEventBatchTest, TakingBeginsANewBatch) {
  KvEventBatch batch(KvEventForm::kMap);
  EXPECT_TRUE(batch.is_empty());
  batch.AddCleared();
  EXPECT_FALSE(batch.is_empty());
  batch.Take(kNow);
  EXPECT_TRUE(batch.is_empty());
  EXPECT_EQ(batch.bytes(), 0);
  EXPECT_TRUE(Decode(batch.Take(kNow))[1].empty());
}

}  // namespace
}  // namespace pando
