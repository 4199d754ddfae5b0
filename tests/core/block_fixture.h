#ifndef PANDO_TESTS_CORE_BLOCK_FIXTURE_H_
#define PANDO_TESTS_CORE_BLOCK_FIXTURE_H_

#include <string>
#include <vector>

#include "core/block_cache.h"
#include "tests/core/cache_fixture.h"

namespace pando {

inline constexpr uint64_t kExtentPlaces = 4;

// A test with one engine's session that has one kind of blocks open, in a
// memory of two extents.
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
  // Returns one key for each letter.
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
  // Returns one letter for each answer: `f` for found, and so on for missing,
  // pending, ready, full and not looked at.
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

}  // namespace pando

#endif  // PANDO_TESTS_CORE_BLOCK_FIXTURE_H_
