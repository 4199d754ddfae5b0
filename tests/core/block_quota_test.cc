// Tests of quotas: what kinds of blocks may take from each other.

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "tests/core/block_fixture.h"

namespace pando {
namespace {

constexpr uint64_t kExtentBytes = kExtentPlaces * kPlaceBytes;

BlockQuota Quota(const std::string& label, uint64_t floor_extents,
                 std::optional<uint64_t> cap_extents = std::nullopt) {
  BlockQuota quota = {.name = label,
                      .label = label,
                      .floor_bytes = floor_extents * kExtentBytes};
  if (cap_extents.has_value()) quota.cap_bytes = *cap_extents * kExtentBytes;
  return quota;
}

// A memory of four extents of four blocks, and a session with kinds that are
// labelled with their names.
class BlockQuotaTest : public testing::Test {
 protected:
  void Start(std::vector<BlockQuota> quotas) {
    cache_.emplace(
        PrefixCache::Options{.page_tokens = 4,
                             .capacity_pages = 2,
                             .blocks = {.memory_bytes = 4 * kExtentBytes,
                                        .extent_bytes = kExtentBytes,
                                        .quotas = std::move(quotas)}});
    blocks_.emplace(&*cache_);
    cache_->OpenSession(session_, "engine");
  }
  void TearDown() override {
    EXPECT_THAT(cache_->CheckInvariants(), testing::IsEmpty());
  }

  KindNumber Open(const std::string& label) {
    const std::vector<KindSpec> specs = {{.ns = {},
                                          .identity = label,
                                          .label = label,
                                          .key_bytes = 16,
                                          .shard_bytes = kPlaceBytes,
                                          .shards = 1}};
    return blocks_->OpenKinds(session_, specs)->front().number;
  }
  // Stores `count` blocks, each after no other, with keys of its own. Returns
  // how many of them got a place.
  uint32_t Store(KindNumber kind, uint32_t count) {
    uint32_t stored = 0;
    for (uint32_t i = 0; i < count; ++i) {
      const std::string key = absl::StrFormat("%016d", next_key_++);
      const std::vector<BlockKeys> asked = {{.kind = kind, .keys = key}};
      const auto places =
          blocks_->Reserve({session_, ReservationId(1), asked, false});
      if (!IsPlace(places->front())) continue;
      ++stored;
      EXPECT_EQ(*blocks_->Publish(session_, ReservationId(1), {}), 0u);
    }
    return stored;
  }
  uint64_t BlocksOf(KindNumber kind) {
    for (const KindStats& stats : blocks_->Stats().kinds) {
      if (stats.kind.number == kind) return stats.ready_blocks;
    }
    return 0;
  }

  std::optional<PrefixCache> cache_;
  std::optional<BlockCache> blocks_;
  const SessionId session_{1};
  int next_key_ = 0;
};

TEST_F(BlockQuotaTest, AKindAtItsCapEvictsItsOwnBlocksAndLeavesTheRestFree) {
  Start({Quota("chat*", 0, 2)});
  const KindNumber chat = Open("chat 70B");
  EXPECT_EQ(Store(chat, 20), 20u);
  EXPECT_EQ(BlocksOf(chat), 8u);
  EXPECT_EQ(blocks_->Stats().free_extents, 2u);
}

TEST_F(BlockQuotaTest, KindsOfOneQuotaShareItsCap) {
  Start({Quota("chat*", 0, 2)});
  const KindNumber keys = Open("chat keys");
  const KindNumber states = Open("chat states");
  EXPECT_EQ(Store(keys, 8), 8u);
  EXPECT_EQ(Store(states, 4), 4u);  // takes one of the two extents
  EXPECT_EQ(BlocksOf(keys), 4u);
  EXPECT_EQ(BlocksOf(states), 4u);
}

TEST_F(BlockQuotaTest, AKindAtItsCapTakesNoColderExtentOfAnotherQuota) {
  Start({Quota("chat*", 0, 2)});
  const KindNumber batch = Open("batch");
  const KindNumber chat = Open("chat");
  Store(batch, 8);
  Store(chat, 100);
  EXPECT_EQ(BlocksOf(batch), 8u);
  EXPECT_EQ(BlocksOf(chat), 8u);
}

TEST_F(BlockQuotaTest, OtherKindsDoNotTakeAQuotaBelowItsFloor) {
  Start({Quota("chat*", 2)});
  const KindNumber chat = Open("chat");
  const KindNumber batch = Open("batch");
  Store(chat, 16);
  EXPECT_EQ(Store(batch, 200), 200u);
  EXPECT_EQ(BlocksOf(chat), 8u);
  EXPECT_EQ(BlocksOf(batch), 8u);
}

TEST_F(BlockQuotaTest, AKindThatFindsOnlyFloorsGetsNoRoom) {
  Start({Quota("chat*", 4)});
  const KindNumber chat = Open("chat");
  const KindNumber batch = Open("batch");
  Store(chat, 16);
  EXPECT_EQ(Store(batch, 1), 0u);
  EXPECT_EQ(BlocksOf(chat), 16u);
}

TEST_F(BlockQuotaTest, AQuotaBelowItsFloorTakesExtentsThatWereJustUsed) {
  Start({Quota("chat*", 2)});
  const KindNumber chat = Open("chat");
  const KindNumber batch = Open("batch");
  Store(chat, 4);
  Store(batch, 12);
  // Each block of `batch` was used later than those of `chat`, so without the
  // floor `chat` would evict its own.
  EXPECT_EQ(Store(chat, 4), 4u);
  EXPECT_EQ(BlocksOf(chat), 8u);
  EXPECT_EQ(BlocksOf(batch), 8u);
  Store(chat, 4);  // at its floor
  EXPECT_EQ(BlocksOf(batch), 8u);
}

TEST_F(BlockQuotaTest, ALockOnTheEndOfAPromptDoesNotHoldItsOtherExtents) {
  Start({Quota("chat*", 2)});
  const KindNumber hog = Open("hog");
  std::string keys;
  for (int i = 0; i < 16; ++i) keys += absl::StrFormat("%016d", 1000 + i);
  const std::vector<BlockKeys> prompt = {{.kind = hog, .keys = keys}};
  ASSERT_EQ(Outcome(blocks_->Reserve({session_, ReservationId(1), prompt})),
            "OK");
  ASSERT_EQ(*blocks_->Publish(session_, ReservationId(1), {}), 0u);
  const std::vector<BlockKeys> end = {
      {.kind = hog, .keys = std::string_view(keys).substr(15 * 16)}};
  ASSERT_EQ(Outcome(blocks_->Acquire({session_, BlockLockId(1), end})), "OK");
  EXPECT_EQ(Store(Open("chat"), 8), 8u);
  EXPECT_EQ(BlocksOf(hog), 8u);
  EXPECT_EQ(Store(hog, 1), 1u);  // in an extent of its own
}

TEST_F(BlockQuotaTest, AFloorTakesNothingFromAnotherFloor) {
  Start({Quota("chat*", 3), Quota("code*", 2)});
  const KindNumber code = Open("code");
  const KindNumber chat = Open("chat");
  Store(code, 8);
  Store(chat, 40);
  EXPECT_EQ(BlocksOf(code), 8u);
  EXPECT_EQ(BlocksOf(chat), 8u);
}

TEST_F(BlockQuotaTest, TheFirstQuotaThatMatchesCounts) {
  Start({Quota("chat small*", 0, 1), Quota("chat*", 0, 2)});
  Store(Open("chat small 1B"), 20);
  Store(Open("chat 70B"), 20);
  const std::vector<BlockQuotaStats> stats = blocks_->Stats().quotas;
  ASSERT_EQ(stats.size(), 2u);
  EXPECT_EQ(stats[0].quota, Quota("chat small*", 0, 1));
  EXPECT_EQ(stats[0].used_bytes, kExtentBytes);
  EXPECT_EQ(stats[1].used_bytes, 2 * kExtentBytes);
}

TEST_F(BlockQuotaTest, ALowerCapEvictsNothingUntilOthersNeedTheRoom) {
  Start({Quota("chat*", 2, 3)});
  const KindNumber chat = Open("chat");
  const KindNumber batch = Open("batch");
  Store(chat, 12);
  cache_->SetBlockLimits({Quota("chat*", 0, 1)}, absl::Seconds(30));
  EXPECT_EQ(BlocksOf(chat), 12u);
  Store(chat, 8);
  EXPECT_EQ(BlocksOf(chat), 12u);
  Store(batch, 100);
  EXPECT_EQ(BlocksOf(chat) + BlocksOf(batch), 16u);
  EXPECT_LT(BlocksOf(chat), 12u);
}

TEST_F(BlockQuotaTest, AResetKindKeepsItsQuota) {
  Start({Quota("chat*", 0, 1)});
  const KindNumber chat = Open("chat");
  Store(chat, 4);
  const KindNumber renewed =
      blocks_->ResetKinds(session_, {{chat}})->front().number;
  Store(renewed, 10);
  EXPECT_EQ(BlocksOf(renewed), 4u);
  EXPECT_EQ(blocks_->Stats().quotas.front().used_bytes, kExtentBytes);
}

}  // namespace
}  // namespace pando
