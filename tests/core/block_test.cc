// Blocks: what the model's programs seldom do.

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/block_cache.h"
#include "core/block_calls/block_reserve.h"
#include "core/block_calls/block_search.h"
#include "core/blocks/block_table.h"
#include "tests/core/cache_fixture.h"

namespace pando {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kExtentPlaces = 4;

class BlockTest : public testing::Test {
 protected:
  BlockTest() {
    cache_.OpenSession(session_, "engine");
    kind_ = Open(session_, "kind");
  }
  void TearDown() override {
    EXPECT_THAT(cache_.CheckInvariants(), testing::IsEmpty());
  }

  static KindSpec Spec(const std::string& identity) {
    return {.ns = {},
            .identity = identity,
            .label = "",
            .key_bytes = 16,
            .shard_bytes = kPlaceBytes,
            .shards = 1};
  }
  KindNumber Open(SessionId session, const std::string& identity) {
    const std::vector<KindSpec> specs = {Spec(identity)};
    return blocks_.OpenKinds(session, specs)->front().number;
  }
  // A key for each letter.
  static std::string Keys(const std::string& letters) {
    std::string keys;
    for (char letter : letters) keys += std::string(16, letter);
    return keys;
  }
  std::vector<BlockKeys> Ask(const std::string& keys,
                             BlockShape shape = BlockShape::kEach,
                             uint32_t window = 0) const {
    return {{.kind = kind_,
             .keys = keys,
             .before = {},
             .shape = shape,
             .window = window}};
  }
  absl::StatusOr<std::vector<BlockPlace>> Reserve(const std::string& letters,
                                                  uint64_t id,
                                                  bool all = false) {
    const std::string keys = Keys(letters);
    return blocks_.Reserve({session_, ReservationId(id), Ask(keys), all});
  }
  void Store(const std::string& letters) {
    EXPECT_EQ(Outcome(Reserve(letters, 99)), "OK");
    EXPECT_EQ(Outcome(blocks_.Publish(session_, ReservationId(99), {})), "OK");
  }
  // A letter for each answer: found, missing, pending, ready, full, not looked
  // at.
  static std::string Letters(
      const absl::StatusOr<std::vector<BlockPlace>>& places) {
    if (!places.ok()) return Outcome(places);
    std::string letters;
    for (BlockPlace place : *places) {
      letters += IsPlace(place) ? 'f' : "mpr!-"[UINT32_MAX - place.value()];
    }
    return letters;
  }
  std::string LookUp(const std::string& letters,
                     BlockShape shape = BlockShape::kEach,
                     uint32_t window = 0) {
    const std::string keys = Keys(letters);
    return Letters(blocks_.Lookup(session_, Ask(keys, shape, window)));
  }
  std::string Acquire(const std::string& letters, uint64_t lock,
                      bool all = false) {
    const std::string keys = Keys(letters);
    return Letters(
        blocks_.Acquire({session_, BlockLockId(lock), Ask(keys), all}));
  }

  PrefixCache cache_{
      {.page_tokens = 4,
       .capacity_pages = 2,
       .session_limits = {.max_block_locks = 4, .max_reserved_blocks = 6},
       .blocks = {.memory_bytes = 2 * kExtentPlaces * kPlaceBytes,
                  .extent_bytes = kExtentPlaces * kPlaceBytes}}};
  BlockCache blocks_{&cache_};
  const SessionId session_{1};
  KindNumber kind_;
};

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
  // Its locks and reservations there are given back as any other's.
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

TEST_F(BlockTest, KindsAreThoseThatTheSessionHasOpen) {
  const SessionId other(2);
  cache_.OpenSession(other, "other");
  const std::string keys = Keys("a");
  EXPECT_EQ(Outcome(blocks_.Lookup(other, Ask(keys))), "KIND_UNKNOWN");
  const std::vector<KindName> names = {{.ns = {}, .identity = "kind"},
                                       {.ns = {}, .identity = "none"}};
  const auto found = blocks_.FindKinds(other, names);
  EXPECT_EQ(found->at(0).number, kind_);
  EXPECT_EQ(found->at(1).number, KindNumber());
  EXPECT_EQ(Outcome(blocks_.Lookup(other, Ask(keys))), "OK");
}

TEST_F(BlockTest, OtherSizesUnderAnIdentityAreRefused) {
  std::vector<KindSpec> specs = {Spec("new"), Spec("kind")};
  specs[1].shard_bytes = 2 * kPlaceBytes;
  const auto opened = blocks_.OpenKinds(session_, specs);
  EXPECT_EQ(Outcome(opened), "LAYOUT_MISMATCH");
  EXPECT_THAT(std::string(opened.status().message()),
              HasSubstr("[1].shard_bytes is 8192, but the kind of this "
                        "identity is there with 4096"));
  EXPECT_EQ(blocks_.Stats().kinds.size(), 1u);  // all or none
}

TEST_F(BlockTest, KindsThatASessionHasOpenAreLimited) {
  for (size_t i = 1; i < kMaxKindsOfSession; ++i) {
    Open(session_, absl::StrCat("other ", i));
  }
  const std::vector<KindSpec> more = {Spec("kind"), Spec("one more")};
  const auto opened = blocks_.OpenKinds(session_, more);
  EXPECT_EQ(Outcome(opened), "SESSION_LIMIT");
  EXPECT_THAT(
      std::string(opened.status().message()),
      HasSubstr("1 more kinds are named, and the session has 256 open"));
  const std::vector<KindNumber> reset = {kind_};
  EXPECT_EQ(Outcome(blocks_.ResetKinds(session_, reset)), "OK");

  const SessionId other(2);
  cache_.OpenSession(other, "other");
  EXPECT_EQ(Outcome(blocks_.OpenKinds(other, more)), "OK");
  const std::vector<KindName> names = {{.ns = {}, .identity = "one more"}};
  EXPECT_EQ(Outcome(blocks_.FindKinds(session_, names)), "SESSION_LIMIT");
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
  EXPECT_EQ(LookUp("d"), "f");  // only the end of the first chain is used
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

TEST_F(BlockTest, GenerationsBetweenTwoThatAreOpenGo) {
  const SessionId other(2);
  cache_.OpenSession(other, "other");
  KindNumber newest = Open(other, "kind");
  for (int i = 0; i < 5; ++i) {
    newest = blocks_.ResetKinds(other, {&newest, 1})->front().number;
  }
  const SessionId third(3);
  cache_.OpenSession(third, "third");
  cache_.CloseSession(third);
  EXPECT_EQ(blocks_.Stats().kinds.size(), 2u);
  cache_.CloseSession(other);
  cache_.CloseSession(session_);
  EXPECT_EQ(blocks_.Stats().kinds.size(), 0u);
}

TEST_F(BlockTest, AResetTakesNothingFromOthers) {
  const SessionId other(2);
  cache_.OpenSession(other, "other");
  Open(other, "kind");
  Store("a");
  const std::vector<KindNumber> kinds = {kind_};
  const BlockKind renewed = blocks_.ResetKinds(session_, kinds)->front();
  EXPECT_EQ(renewed.generation, 2u);
  const std::string keys = Keys("a");
  EXPECT_EQ(Outcome(blocks_.Lookup(session_, Ask(keys))), "KIND_UNKNOWN");
  EXPECT_EQ(Letters(blocks_.Lookup(other, Ask(keys))), "f");
  cache_.CloseSession(other);
  EXPECT_EQ(blocks_.Stats().free_extents, 2u);
  EXPECT_EQ(blocks_.Stats().kinds.size(), 1u);
}

TEST_F(BlockTest, TheNewestGenerationStaysWhileAnOlderOneIsOpen) {
  const SessionId other(2);
  cache_.OpenSession(other, "other");
  Open(other, "kind");
  const std::vector<KindNumber> kinds = {kind_};
  EXPECT_EQ(blocks_.ResetKinds(other, kinds)->front().generation, 2u);
  cache_.CloseSession(other);
  EXPECT_EQ(blocks_.ResetKinds(session_, kinds)->front().generation, 2u);
  EXPECT_EQ(blocks_.Stats().kinds.size(), 2u);
  cache_.ExpireSessions(absl::UnixEpoch(), absl::Hours(1));
  EXPECT_EQ(blocks_.Stats().kinds.size(), 1u);
}

TEST_F(BlockTest, WhatIsWrittenForTooLongMayBeWrittenByAnother) {
  EXPECT_EQ(Letters(Reserve("a", 1)), "f");
  EXPECT_EQ(Letters(Reserve("a", 2)), "p");
  cache_.ExpireSessions(absl::UnixEpoch() + absl::Seconds(30), absl::Hours(1));
  EXPECT_EQ(LookUp("a"), "m");
  EXPECT_EQ(Letters(Reserve("a", 2)), "f");
  // Who is first is found.
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
  EXPECT_EQ(Acquire("b", 1), "INVALID_FIELD");  // the lock of another call
  EXPECT_EQ(*blocks_.Release(session_, std::vector{BlockLockId(1)}), 0u);
  EXPECT_EQ(*blocks_.Release(session_, std::vector{BlockLockId(1)}), 1u);
  EXPECT_TRUE(cache_.IsIdle());
}

// An extent that is taken back gives up all of its blocks in one hold.
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

// To look for one that gives an extent costs work of the step.
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
  // The last kind gets one extent after the other.
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
  // As if many locked it.
  for (blocks.At(block).locks = BlockRecord::kMaxCount - 9;
       blocks.CanLock(block);) {
    blocks.Lock(kind, block);
  }
  blocks.Pin(block);
  EXPECT_FALSE(blocks.MakeRoom(kind));
}

}  // namespace
}  // namespace pando
