// Tests of blocks in situations that the model's random programs seldom reach.

#include <string>
#include <vector>

#include "core/block_cache.h"
#include "core/blocks/block_table.h"
#include "tests/core/block_fixture.h"

namespace pando {
namespace {

using ::testing::HasSubstr;

TEST_F(BlockTest, APartOfPandodUsesTheNewestKindsAndKeepsNone) {
  const SessionId part(2);
  cache_.OpenSession(part, "tier", /*is_internal=*/true);
  Store("abcde");
  const std::string keys = Keys("abcdex");
  EXPECT_EQ(Letters(blocks_.Acquire({part, BlockLockId(1), Ask(keys)})),
            "fffffm");
  EXPECT_EQ(Letters(blocks_.Reserve({part, ReservationId(1), Ask(keys)})),
            "rrrrrf");
  const KindCounters counters = blocks_.Stats().kinds.front().counters;
  EXPECT_EQ(counters.hits + counters.misses, 0u);
  const KindNumber old = kind_;
  kind_ = blocks_.ResetKinds(session_, {&old, 1})->front().number;
  EXPECT_EQ(Letters(blocks_.Lookup(part, Ask(keys))), "mmmmmm");
  kind_ = old;
  EXPECT_THAT(Outcome(blocks_.Lookup(part, Ask(keys))),
              HasSubstr("KIND_UNKNOWN"));
  // Closing the session gives back its locks and reservations of the old kind,
  // too, so that the old kind is gone.
  cache_.CloseSession(part);
  EXPECT_EQ(blocks_.Stats().kinds.size(), 1u);
}

TEST_F(BlockTest, PublishTellsTheKeysOfWhatItPublishes) {
  std::vector<KeysOfKind> published;
  Store("b");
  ASSERT_EQ(Letters(Reserve("abc", 1)), "frf");
  EXPECT_EQ(*blocks_.Publish(session_, ReservationId(1), {}, &published), 0u);
  ASSERT_EQ(published.size(), 1u);
  EXPECT_EQ(published[0].kind, kind_);
  EXPECT_EQ(published[0].keys, Keys("ac"));
  published.clear();
  EXPECT_EQ(*blocks_.Publish(session_, ReservationId(1), {}, &published), 1u);
  EXPECT_TRUE(published.empty());
}

TEST_F(BlockTest, APeekIsNoUseAndIsNotCounted) {
  for (const char letter : std::string("abcdefgh")) Store({letter});
  const auto counters = [&] { return blocks_.Stats().kinds.front().counters; };
  const KindCounters before = counters();
  const std::string keys = Keys("axb");
  EXPECT_EQ(Letters(blocks_.Lookup(session_, Ask(keys), /*peeks=*/true)),
            "fmf");
  EXPECT_EQ(counters().hits, before.hits);
  EXPECT_EQ(counters().misses, before.misses);
  // Storing one more block fills the memory.
  Store("i");
  EXPECT_EQ(LookUp("abi"), "mff");
}

TEST_F(BlockTest, ShapesSayWhichKeysDecide) {
  Store("ab");
  Store("de");
  EXPECT_EQ(LookUp("abcde"), "ffmff");
  EXPECT_EQ(LookUp("abcde", BlockShape::kPrefix), "ffm--");
  EXPECT_EQ(LookUp("abcde", BlockShape::kCheckpoint), "----f");
  EXPECT_EQ(LookUp("abcde", BlockShape::kWindow, 2), "---ff");
  EXPECT_EQ(LookUp("abcde", BlockShape::kWindow, 3), "ffm--");
  EXPECT_EQ(LookUp("abc", BlockShape::kWindow, 2), "ffm");
}

TEST_F(BlockTest, AllOrNothingTellsWhatIsMissingAndLocksNothing) {
  Store("ab");
  EXPECT_EQ(Acquire("abc", 1, true), "rrm");
  EXPECT_TRUE(cache_.IsIdle());
  EXPECT_EQ(Acquire("ab", 1, true), "ff");
  EXPECT_FALSE(cache_.IsIdle());
}

TEST_F(BlockTest, AReservationOfAllWithoutRoomForAllReservesNothing) {
  Store("abcd");
  EXPECT_EQ(Acquire("abcd", 1), "ffff");
  EXPECT_EQ(Letters(Reserve("efghi", 1, true)), "mmmm!");
  EXPECT_EQ(LookUp("efghi"), "mmmmm");
  EXPECT_EQ(Letters(Reserve("efghi", 1)), "ffff!");
}

TEST_F(BlockTest, LimitsOfASessionAreNamedAndChangeNothing) {
  Store("abcde");
  const std::string keys = Keys("abcde");
  const auto locked =
      blocks_.Acquire({session_, BlockLockId(1), Ask(keys), false});
  EXPECT_EQ(Outcome(locked), "SESSION_LIMIT");
  EXPECT_THAT(std::string(locked.status().message()),
              HasSubstr("has locked 4 blocks; the limit is 4"));
  EXPECT_EQ(Letters(Reserve("klmnopq", 1)), "SESSION_LIMIT");
  EXPECT_TRUE(cache_.IsIdle());
}

TEST_F(BlockTest, ABlockThatFitsIntoNoExtentIsRefused) {
  std::vector<KindSpec> specs = {Spec("large")};
  specs[0].shards = kExtentPlaces + 1;
  EXPECT_EQ(Outcome(blocks_.OpenKinds(session_, specs)), "INVALID_FIELD");
  specs[0].shards = kExtentPlaces;
  EXPECT_EQ(Outcome(blocks_.OpenKinds(session_, specs)), "OK");
}

TEST_F(BlockTest, ABlockGoesAfterThoseThatFollowIt) {
  Store("abcd");
  Store("efgh");
  EXPECT_EQ(LookUp("d"), "f");  // uses only the end of the first chain
  Store("ij");
  EXPECT_EQ(LookUp("abcdefgh"), "ffffffmm");
}

TEST_F(BlockTest, BlocksThatClaimToFollowEachOtherAreEvictedLikeOthers) {
  Store("ab");
  EXPECT_EQ(Letters(Reserve("ba", 1)), "rr");
  Store("cdef");
  Store("ghij");
  Store("klmn");
  EXPECT_EQ(LookUp("ab"), "mm");
}

TEST_F(BlockTest, ABlockThatClaimsToFollowItselfFollowsNothing) {
  EXPECT_EQ(Letters(Reserve("a", 1)), "f");
  cache_.ExpireSessions(absl::UnixEpoch() + absl::Seconds(30), absl::Hours(1));
  const std::string key = Keys("a");
  std::vector<BlockKeys> keys = Ask(key);
  keys[0].before = key;
  EXPECT_EQ(Letters(blocks_.Reserve({session_, ReservationId(2), keys, false})),
            "f");
  EXPECT_EQ(*blocks_.Discard(session_, ReservationId(1), {}), 0u);
  EXPECT_THAT(cache_.CheckInvariants(), testing::IsEmpty());
}

TEST_F(BlockTest, WhatIsWrittenForTooLongMayBeWrittenByAnother) {
  EXPECT_EQ(Letters(Reserve("a", 1)), "f");
  EXPECT_EQ(Letters(Reserve("a", 2)), "p");
  cache_.ExpireSessions(absl::UnixEpoch() + absl::Seconds(30), absl::Hours(1));
  EXPECT_EQ(LookUp("a"), "m");
  EXPECT_EQ(Letters(Reserve("a", 2)), "f");
  // Lookups find the block of the session that publishes first.
  EXPECT_EQ(*blocks_.Publish(session_, ReservationId(1), {}), 0u);
  EXPECT_EQ(LookUp("a"), "f");
  EXPECT_EQ(*blocks_.Publish(session_, ReservationId(2), {}), 0u);
  EXPECT_EQ(blocks_.Stats().kinds[0].counters.duplicates, 1u);
}

TEST_F(BlockTest, WithoutMemoryEachCallSaysSo) {
  PrefixCache cache({.page_tokens = 4, .capacity_pages = 2});
  BlockCache blocks(&cache);
  cache.OpenSession(session_, "engine");
  EXPECT_EQ(Outcome(blocks.OpenKinds(session_, {})), "NO_BLOCK_MEMORY");
  EXPECT_EQ(Outcome(blocks.Lookup(session_, {})), "NO_BLOCK_MEMORY");
  EXPECT_EQ(Outcome(blocks.Release(session_, {})), "NO_BLOCK_MEMORY");
}

TEST_F(BlockTest, WhileDrainingOnlyWhoHoldsSomethingIsAdmitted) {
  Store("a");
  EXPECT_EQ(Acquire("a", 1), "f");
  cache_.BeginDrain();
  EXPECT_EQ(Acquire("a", 2), "f");
  EXPECT_EQ(Outcome(blocks_.Release(
                session_, std::vector{BlockLockId(1), BlockLockId(2)})),
            "OK");
  EXPECT_EQ(Acquire("a", 1), "DRAINING");
  EXPECT_EQ(Letters(Reserve("b", 1)), "DRAINING");
}

TEST_F(BlockTest, WhatIsInQuarantineKeepsNoServerFromEnding) {
  const SessionId lost(2);
  cache_.OpenSession(lost, "stopped");
  ASSERT_EQ(Outcome(cache_.AttachSession(lost, WriterId(1))), "OK");
  Open(lost, "kind");
  const std::string key = Keys("a");
  ASSERT_EQ(Letters(blocks_.Reserve({lost, ReservationId(1), Ask(key), false})),
            "f");
  EXPECT_FALSE(cache_.IsIdle());
  cache_.SuspendSession(lost, absl::UnixEpoch());
  cache_.ExpireSessions(absl::UnixEpoch(), absl::Hours(1));
  EXPECT_EQ(blocks_.Stats().quarantined_blocks, 1u);
  EXPECT_TRUE(cache_.IsIdle());
}

TEST_F(BlockTest, RepeatsGetTheFirstAnswerAndReleasesAreIdempotent) {
  Store("a");
  const std::string keys = Keys("a");
  const auto asked = Ask(keys);
  const AcquireBlocksRequest request{session_, BlockLockId(1), asked, false};
  EXPECT_EQ(Letters(blocks_.Acquire(request)), "f");
  EXPECT_EQ(Letters(blocks_.Acquire(request)), "f");
  EXPECT_EQ(blocks_.Stats().locks, 1u);
  EXPECT_EQ(Acquire("b", 1), "INVALID_FIELD");  // another call's lock
  EXPECT_EQ(*blocks_.Release(session_, std::vector{BlockLockId(1)}), 0u);
  EXPECT_EQ(*blocks_.Release(session_, std::vector{BlockLockId(1)}), 1u);
  EXPECT_TRUE(cache_.IsIdle());
}

TEST(BlockRoomTest, BlocksOfWhichAnExtentHasTooManyAreRefused) {
  constexpr uint64_t kExtentBytes = 2 * kMaxBlocksOfExtent * kPlaceBytes;
  PrefixCache cache(
      {.page_tokens = 4,
       .capacity_pages = 2,
       .blocks = {.memory_bytes = kExtentBytes, .extent_bytes = kExtentBytes}});
  BlockCache blocks(&cache);
  cache.OpenSession(SessionId(1), "engine");
  std::vector<KindSpec> specs = {{.ns = {},
                                  .identity = "small",
                                  .label = "",
                                  .key_bytes = 16,
                                  .shard_bytes = kPlaceBytes,
                                  .shards = 1}};
  const auto refused = blocks.OpenKinds(SessionId(1), specs);
  EXPECT_EQ(Outcome(refused), "INVALID_FIELD");
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("needs blocks of 8192 bytes or more"));
  specs[0].shards = 2;
  EXPECT_EQ(Outcome(blocks.OpenKinds(SessionId(1), specs)), "OK");
}

TEST(BlockRoomTest, AnExtentWithoutHeldBlocksMovesWhereverItsBlocksAre) {
  constexpr size_t kExtents = 16;
  PrefixCache cache({.page_tokens = 4,
                     .capacity_pages = 2,
                     .blocks = {.memory_bytes = 2 * kExtents * kPlaceBytes,
                                .extent_bytes = 2 * kPlaceBytes}});
  BlockCache blocks(&cache);
  const SessionId session(1);
  cache.OpenSession(session, "engine");
  std::vector<KindSpec> specs(2, {.ns = {},
                                  .identity = "many",
                                  .label = "",
                                  .key_bytes = 16,
                                  .shard_bytes = kPlaceBytes,
                                  .shards = 1});
  specs[1].identity = "none";
  const auto kinds = blocks.OpenKinds(session, specs);
  std::string locked;
  for (size_t i = 0; i < kExtents; ++i) {
    const char letter = static_cast<char>('a' + i);
    const std::string keys =
        std::string(16, letter) + std::string(16, letter - 32);
    const std::vector<BlockKeys> asked = {
        {.kind = kinds->at(0).number, .keys = keys, .before = {}}};
    ASSERT_EQ(
        Outcome(blocks.Reserve({session, ReservationId(1), asked, false})),
        "OK");
    ASSERT_EQ(Outcome(blocks.Publish(session, ReservationId(1), {})), "OK");
    if (i < kExtents - 1) locked += std::string(16, letter);
  }
  const std::vector<BlockKeys> read = {
      {.kind = kinds->at(0).number, .keys = locked, .before = {}}};
  ASSERT_EQ(Outcome(blocks.Acquire({session, BlockLockId(1), read, false})),
            "OK");
  const std::string key(16, 'a');
  const std::vector<BlockKeys> asked = {
      {.kind = kinds->at(1).number, .keys = key, .before = {}}};
  const auto places = blocks.Reserve({session, ReservationId(1), asked, false});
  EXPECT_TRUE(IsPlace(places->front()));
}

TEST(BlockTableTest, ABlockWithAllLocksThatItMayHaveStaysWhileItIsPinned) {
  BlockTable blocks({.memory_bytes = kPlaceBytes, .extent_bytes = kPlaceBytes});
  Kind& kind = blocks.kinds().FindOrMake({.ns = {},
                                          .identity = "kind",
                                          .label = "",
                                          .key_bytes = 16,
                                          .shard_bytes = kPlaceBytes,
                                          .shards = 1});
  ASSERT_TRUE(blocks.MakeRoom(kind));
  const BlockNumber block =
      blocks.Reserve(kind, std::string(16, 'a'), kNoBlock);
  ASSERT_TRUE(blocks.Publish(block));
  blocks.Lock(kind, block);
  // Sets the count as if many sessions had locked the block.
  for (blocks.At(block).locks = BlockRecord::kMaxCount - 9;
       blocks.CanLock(block);) {
    blocks.Lock(kind, block);
  }
  blocks.Pin(block);
  EXPECT_FALSE(blocks.MakeRoom(kind));
}

}  // namespace
}  // namespace pando
