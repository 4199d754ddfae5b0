// Tests of calls with many blocks or kinds, which let other calls run between
// their steps.

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/block_cache.h"
#include "core/block_calls/block_ends.h"
#include "core/block_calls/block_reports.h"
#include "core/block_calls/block_reserve.h"
#include "core/block_calls/block_search.h"
#include "tests/core/block_fixture.h"

namespace pando {
namespace {

TEST_F(BlockTest, ManyRowsAreSoughtInSteps) {
  const std::string key = Keys("a");
  const std::vector<BlockKeys> rows(kMaxBlockKeys,
                                    Ask(key, BlockShape::kCheckpoint).front());
  BlockSearch search(session_, rows);
  size_t steps = 1;
  while (!cache_.Step(search)) ++steps;
  EXPECT_GE(steps, kMaxBlockKeys / kStepKeys);
  EXPECT_THAT(*search.Take(), testing::Each(kMissingBlock));
}

TEST(BlockStepsTest, RoomAmongManyKindsIsMadeInSteps) {
  constexpr size_t kKinds = 2'048;
  PrefixCache cache({.page_tokens = 4,
                     .capacity_pages = 2,
                     .blocks = {.memory_bytes = kKinds * kPlaceBytes,
                                .extent_bytes = kPlaceBytes}});
  BlockCache blocks(&cache);
  SessionId session;
  std::string keys;
  std::vector<BlockKeys> asked;
  for (size_t i = 0; i < kKinds; ++i) {
    if (i % kMaxKindsOfSession == 0) {
      session = SessionId(1 + i);
      cache.OpenSession(session, "engine");
    }
    const std::vector<KindSpec> specs = {{.ns = {},
                                          .identity = absl::StrCat(i),
                                          .label = "",
                                          .key_bytes = 16,
                                          .shard_bytes = kPlaceBytes,
                                          .shards = 1}};
    keys = std::string(16, 'a');
    asked = {{.kind = blocks.OpenKinds(session, specs)->front().number,
              .keys = keys,
              .before = {}}};
    ASSERT_EQ(
        Outcome(blocks.Reserve({session, ReservationId(1), asked, false})),
        "OK");
    ASSERT_EQ(Outcome(blocks.Publish(session, ReservationId(1), {})), "OK");
  }
  // The last kind takes one extent after another from the other kinds.
  for (char letter = 'b'; letter < 'z'; ++letter) {
    keys += std::string(16, letter);
  }
  asked.front().keys = keys;
  BlockReserve reserve({session, ReservationId(1), asked, false});
  size_t steps = 1;
  while (!cache.Step(reserve)) ++steps;
  EXPECT_GT(steps, 1u);
  ASSERT_EQ(Outcome(reserve.Take()), "OK");
}

// A test with blocks of two kinds, more than a call may take in one step.
class ManyBlocksTest : public testing::Test {
 protected:
  static constexpr uint32_t kBlocks = 2 * kStepKeys;

  ManyBlocksTest() {
    cache_.OpenSession(session_, "engine");
    std::vector<KindSpec> specs(2, {.ns = {},
                                    .identity = "one",
                                    .label = "",
                                    .key_bytes = 16,
                                    .shard_bytes = kPlaceBytes,
                                    .shards = 1});
    specs[1].identity = "other";
    kinds_ = *blocks_.OpenKinds(session_, specs);
    for (uint32_t i = 0; i < kBlocks; ++i) {
      keys_.push_back(absl::StrFormat("%016d", i));
    }
    std::vector<BlockKeys> asked;
    for (uint32_t i = 0; i < kBlocks; ++i) {
      asked.push_back(
          {.kind = kinds_[i % 2].number, .keys = keys_[i], .before = {}});
    }
    EXPECT_EQ(Outcome(blocks_.Reserve({session_, reservation_, asked, true})),
              "OK");
  }
  void TearDown() override {
    EXPECT_THAT(cache_.CheckInvariants(), testing::IsEmpty());
  }
  static const std::string& Keys(char letter) {
    static const std::string keys(16, letter);
    return keys;
  }
  uint64_t ReadyBlocks() {
    uint64_t ready = 0;
    for (const KindStats& kind : blocks_.Stats().kinds) {
      ready += kind.ready_blocks;
    }
    return ready;
  }

  PrefixCache cache_{{.page_tokens = 4,
                      .capacity_pages = 2,
                      .blocks = {.memory_bytes = 2 * kBlocks * kPlaceBytes,
                                 .extent_bytes = kBlocks / 4 * kPlaceBytes}}};
  BlockCache blocks_{&cache_};
  const SessionId session_{1};
  const ReservationId reservation_{1};
  std::vector<BlockKind> kinds_;
  std::vector<std::string> keys_;
};

TEST_F(ManyBlocksTest, KeysAreNotedInStepsAndBlocksPublishedInOne) {
  BlockCompletion completion(session_, reservation_, {},
                             BlockCompletion::Outcome::kPublished,
                             /*notes_keys=*/true);
  size_t steps = 1;
  while (!cache_.Step(completion)) {
    EXPECT_EQ(ReadyBlocks(), 0u);
    ++steps;
  }
  EXPECT_EQ(steps, 1 + kBlocks / kStepKeys);
  EXPECT_EQ(ReadyBlocks(), kBlocks);
  EXPECT_EQ(*completion.result(), 0u);
  const std::vector<KeysOfKind> noted = completion.TakeKeys();
  ASSERT_EQ(noted.size(), 2u);
  for (size_t kind = 0; kind < 2; ++kind) {
    std::string keys;
    for (size_t i = kind; i < kBlocks; i += 2) keys += keys_[i];
    EXPECT_EQ(noted[kind].kind, kinds_[kind].number);
    EXPECT_EQ(noted[kind].keys, keys);
  }
}

TEST_F(ManyBlocksTest, OverdueBlocksArePreparedInStepsAndDetachedNoMore) {
  const auto reserve = [&](uint64_t id) {
    std::vector<BlockKeys> asked;
    for (uint32_t i = 0; i < kBlocks; ++i) {
      asked.push_back(
          {.kind = kinds_[i % 2].number, .keys = keys_[i], .before = {}});
    }
    return *blocks_.Reserve({session_, ReservationId(id), asked, true});
  };
  const absl::Time later = absl::UnixEpoch() + absl::Seconds(31);
  cache_.ExpireSessions(later, absl::Hours(1));
  ASSERT_THAT(reserve(2), testing::Each(testing::Truly(IsPlace)));
  cache_.ExpireSessions(later + absl::Seconds(31), absl::Hours(1));
  BlockCompletion completion(session_, reservation_, {},
                             BlockCompletion::Outcome::kPublished,
                             /*notes_keys=*/false);
  for (uint32_t i = 0; i < kBlocks / kStepKeys; ++i) {
    ASSERT_FALSE(cache_.Step(completion));
  }
  EXPECT_THAT(reserve(3), testing::Each(kPendingBlock));
  EXPECT_EQ(ReadyBlocks(), 0u);
  ASSERT_TRUE(cache_.Step(completion));
  EXPECT_EQ(ReadyBlocks(), kBlocks);
  EXPECT_EQ(*completion.result(), 0u);
  // The blocks that were reserved anew are duplicates.
  EXPECT_EQ(*blocks_.Publish(session_, ReservationId(2), {}), 0u);
  EXPECT_EQ(ReadyBlocks(), kBlocks);
}

TEST_F(ManyBlocksTest, BlocksAreDiscardedInSteps) {
  std::vector<uint32_t> indices;
  for (uint32_t i = 0; i < kBlocks; ++i) indices.push_back(i / 2 * 2);
  BlockCompletion completion(session_, reservation_, indices,
                             BlockCompletion::Outcome::kDiscarded,
                             /*notes_keys=*/false);
  size_t steps = 1;
  while (!cache_.Step(completion)) ++steps;
  EXPECT_EQ(steps, kBlocks / kStepKeys);
  EXPECT_EQ(*completion.result(), kBlocks / 2);  // each one was named twice
  EXPECT_EQ(*blocks_.Publish(session_, reservation_, {}), 0u);
  EXPECT_EQ(ReadyBlocks(), kBlocks / 2);
}

TEST_F(ManyBlocksTest, WhatWasDiscardedBetweenTwoStepsIsUnknown) {
  std::vector<uint32_t> indices;
  for (uint32_t i = 0; i < kBlocks; ++i) indices.push_back(i);
  BlockCompletion completion(session_, reservation_, indices,
                             BlockCompletion::Outcome::kDiscarded,
                             /*notes_keys=*/false);
  ASSERT_FALSE(cache_.Step(completion));
  EXPECT_EQ(*blocks_.Discard(session_, {&reservation_, 1}), 0u);
  while (!cache_.Step(completion)) {
  }
  EXPECT_EQ(*completion.result(), kBlocks - kStepKeys);
}

TEST_F(ManyBlocksTest, AnotherReservationOfTheNameIsNotCompleted) {
  for (const bool has_indices : {true, false}) {
    for (const auto outcome : {BlockCompletion::Outcome::kPublished,
                               BlockCompletion::Outcome::kDiscarded}) {
      const ReservationId name(has_indices ? 7 : 8);
      const KindNumber kind =
          blocks_.ResetKinds(session_, {{kinds_[0].number}})->front().number;
      kinds_[0].number = kind;
      std::vector<BlockKeys> asked;
      for (const std::string& key : keys_) {
        asked.push_back({.kind = kind, .keys = key, .before = {}});
      }
      const std::vector<BlockKeys> one = {
          {.kind = kind, .keys = Keys('x'), .before = {}}};
      ASSERT_EQ(Outcome(blocks_.Discard(session_, reservation_, {})), "OK");
      ASSERT_EQ(Outcome(blocks_.Reserve({session_, name, asked, true})), "OK");
      std::vector<uint32_t> indices;
      for (uint32_t i = 0; i < kBlocks; ++i) indices.push_back(i);
      if (!has_indices) indices.clear();
      BlockCompletion completion(session_, name, indices, outcome,
                                 /*notes_keys=*/true);
      ASSERT_FALSE(cache_.Step(completion));
      ASSERT_EQ(Outcome(blocks_.Discard(session_, name, {})), "OK");
      ASSERT_EQ(Outcome(blocks_.Reserve({session_, name, one, true})), "OK");
      EXPECT_TRUE(cache_.Step(completion));
      EXPECT_TRUE(completion.TakeKeys().empty());
      EXPECT_EQ(ReadyBlocks(), 0u);
      // The later reservation of the same name is still there.
      EXPECT_EQ(*blocks_.Discard(session_, name, {}), 0u);
    }
  }
}

TEST(BlockStepsTest, FiguresOfManyKindsAreTakenInSteps) {
  constexpr size_t kKinds = 200;
  PrefixCache cache(
      {.page_tokens = 4,
       .capacity_pages = 2,
       .blocks = {.memory_bytes = kPlaceBytes, .extent_bytes = kPlaceBytes}});
  BlockCache blocks(&cache);
  cache.OpenSession(SessionId(1), "engine");
  std::vector<KindSpec> specs;
  for (size_t i = 0; i < kKinds; ++i) {
    specs.push_back({.ns = {},
                     .identity = absl::StrCat(i),
                     .label = "",
                     .key_bytes = 16,
                     .shard_bytes = kPlaceBytes,
                     .shards = 1});
  }
  ASSERT_EQ(Outcome(blocks.OpenKinds(SessionId(1), specs)), "OK");
  BlockCensus census;
  size_t steps = 1;
  while (!cache.Step(census)) ++steps;
  EXPECT_GT(steps, 2u);
  const BlockStats stats = census.Take();
  ASSERT_EQ(stats.kinds.size(), kKinds);
  for (size_t i = 0; i < kKinds; ++i) {
    EXPECT_EQ(stats.kinds[i].kind.spec.identity, absl::StrCat(i));
  }
}

}  // namespace
}  // namespace pando
