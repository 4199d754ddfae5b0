// Many engines share one block memory. While a session may write or read a
// block, no other session may write the block. Meant for the thread sanitizer.

#include <atomic>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "core/block_cache.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pando {
namespace {

constexpr uint32_t kWorkers = 6;
constexpr uint32_t kRounds = 400;
constexpr uint64_t kPlaces = 64;

std::string KeyOf(uint32_t prompt, uint32_t i) {
  std::string key = std::to_string(prompt) + "/" + std::to_string(i);
  key.resize(16, ' ');
  return key;
}

TEST(BlockThreadsTest, BytesAreThoseOfTheirKeysWhateverOthersDo) {
  PrefixCache cache({.page_tokens = 4,
                     .capacity_pages = 2,
                     .blocks = {.memory_bytes = kPlaces * kPlaceBytes,
                                .extent_bytes = 8 * kPlaceBytes}});
  BlockCache blocks(&cache);
  // The bytes of each place, which are not atomic, so that the sanitizer
  // reports two workers that use one place at the same time.
  std::vector<uint64_t> memory(kPlaces);
  std::atomic<uint32_t> hits = 0;
  const auto work = [&](uint32_t worker) {
    std::mt19937_64 random(worker);
    SessionId session(worker + 1);
    std::vector<KindSpec> specs(2);
    for (uint32_t k = 0; k < 2; ++k) {
      specs[k] = {.ns = {},
                  .identity = std::to_string(k),
                  .label = "",
                  .key_bytes = 16,
                  .shard_bytes = (k + 1) * kPlaceBytes,
                  .shards = 1};
    }
    std::vector<BlockKind> kinds;
    for (uint32_t round = 0; round < kRounds; ++round) {
      if (round % 100 == 0) {
        if (round > 0) cache.CloseSession(session);
        session = SessionId(session.value() + kWorkers);
        cache.OpenSession(session, "worker");
        kinds = *blocks.OpenKinds(session, specs);
      }
      const auto k = static_cast<uint32_t>(random() % 2);
      const auto prompt = static_cast<uint32_t>(random() % 6);
      std::string keys;
      for (uint32_t i = 0; i < 5; ++i) keys += KeyOf(prompt, i);
      const uint64_t bytes = prompt + 1 + 100 * kinds[k].number.value();
      const std::vector<BlockKeys> asked = {{.kind = kinds[k].number,
                                             .keys = keys,
                                             .before = {},
                                             .shape = BlockShape::kPrefix}};
      const std::vector<BlockLockId> lock = {BlockLockId(1)};
      const auto found = blocks.Acquire({session, lock[0], asked});
      ASSERT_TRUE(found.ok()) << found.status();
      for (BlockPlace place : *found) {
        if (!IsPlace(place)) continue;
        EXPECT_EQ(memory[place.value()], bytes);
        ++hits;
      }
      ASSERT_TRUE(blocks.Release(session, lock).ok());
      const auto room = blocks.Reserve({session, ReservationId(1), asked});
      ASSERT_TRUE(room.ok()) << room.status();
      for (BlockPlace place : *room) {
        if (IsPlace(place)) memory[place.value()] = bytes;
      }
      ASSERT_TRUE(blocks.Publish(session, ReservationId(1), {}).ok());
      if (round % 97 == 96) {
        const std::vector<KindNumber> numbers = {kinds[k].number};
        kinds[k] = blocks.ResetKinds(session, numbers)->front();
      }
    }
    cache.CloseSession(session);
  };
  std::vector<std::thread> threads;
  for (uint32_t w = 0; w < kWorkers; ++w) threads.emplace_back(work, w);
  for (int i = 0; i < 50; ++i) {
    EXPECT_THAT(
        *[&] {
          auto violations = cache.CheckInvariantsStep();
          while (!violations.has_value())
            violations = cache.CheckInvariantsStep();
          return violations;
        }(),
        testing::IsEmpty());
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(hits, 0u);
  EXPECT_TRUE(cache.IsIdle());
  EXPECT_THAT(cache.CheckInvariants(), testing::IsEmpty());
}

}  // namespace
}  // namespace pando
