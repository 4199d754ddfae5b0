#include "core/nodes/segment_arena.h"

#include <cstring>
#include <map>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace pando {
namespace {

constexpr uint32_t kChunks = 40;

class SegmentArenaTest : public testing::Test {
 protected:
  // Allocates an object that begins with `mark`, which is not 0.
  std::byte* Allocate(SegmentArena& arena, size_t bytes, uint32_t mark) {
    std::byte* const cell = arena.Allocate(bytes);
    if (cell == nullptr) return nullptr;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(cell) % 16, 0);
    EXPECT_EQ(MarkOf(cell), 0);
    std::memset(cell, 0xff, bytes);
    std::memcpy(cell, &mark, sizeof(mark));
    return cell;
  }
  static uint32_t MarkOf(const std::byte* cell) {
    uint32_t mark;
    std::memcpy(&mark, cell, sizeof(mark));
    return mark;
  }
  std::span<std::byte> memory() {
    return std::as_writable_bytes(std::span(words_));
  }

  std::vector<uint32_t> table_ = std::vector<uint32_t>(kChunks);
  std::vector<std::max_align_t> words_ = std::vector<std::max_align_t>(
      kChunks * SegmentArena::kChunkBytes / sizeof(std::max_align_t));
};

TEST_F(SegmentArenaTest, TheNextProcessFindsTheObjectsThatWereNotFreed) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  struct Object {
    size_t bytes;
    uint32_t mark;
  };
  std::map<std::byte*, Object> objects;
  uint32_t mark = 0;
  for (int process = 0; process < 20; ++process) {
    SegmentArena arena(table_, memory());
    std::map<std::byte*, Object> found;
    arena.Recover([&](std::byte* cell, size_t bytes) {
      if (MarkOf(cell) == 0) return false;
      found[cell] = {bytes, MarkOf(cell)};
      return true;
    });
    ASSERT_EQ(found.size(), objects.size());
    for (const auto& [cell, object] : objects) {
      ASSERT_EQ(found[cell].mark, object.mark);
      ASSERT_GE(found[cell].bytes, object.bytes);
    }
    for (int i = 0; i < 2'000; ++i) {
      if (random() % 2 == 0 && !objects.empty()) {
        auto it = objects.begin();
        std::advance(it, random() % objects.size());
        ASSERT_EQ(MarkOf(it->first), it->second.mark);
        arena.Free(it->first);
        objects.erase(it);
        continue;
      }
      const size_t bytes =
          random() % 8 == 0 ? 1 + random() % 200'000 : 64 + random() % 6'000;
      std::byte* const cell = Allocate(arena, bytes, ++mark);
      if (cell == nullptr) continue;
      // No object overlaps its neighbours.
      const auto after = objects.upper_bound(cell);
      if (after != objects.end()) ASSERT_LE(cell + bytes, after->first);
      if (after != objects.begin()) {
        const auto before = std::prev(after);
        ASSERT_LE(before->first + before->second.bytes, cell);
      }
      objects[cell] = {bytes, mark};
    }
  }
}

TEST_F(SegmentArenaTest, AllMemoryCanBeUsedAgainForOtherSizes) {
  SegmentArena arena(table_, memory());
  for (size_t bytes : {128, 1'000, 30'000, 65'536, 300'000, 72}) {
    std::vector<std::byte*> cells;
    while (std::byte* const cell = Allocate(arena, bytes, 1)) {
      cells.push_back(cell);
    }
    EXPECT_GE(cells.size() * bytes, kChunks * SegmentArena::kChunkBytes / 2);
    for (std::byte* cell : cells) arena.Free(cell);
  }
  EXPECT_NE(arena.Allocate(kChunks * SegmentArena::kChunkBytes), nullptr);
}

TEST_F(SegmentArenaTest, WhatIsLargerThanTheMemoryIsRefused) {
  SegmentArena arena(table_, memory());
  EXPECT_EQ(arena.Allocate(kChunks * SegmentArena::kChunkBytes + 1), nullptr);
  EXPECT_EQ(arena.Allocate(size_t{1} << 50), nullptr);
}

TEST_F(SegmentArenaTest, AnyBytesInTheTableAreUsable) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 200; ++round) {
    for (uint32_t& entry : table_) {
      entry = static_cast<uint32_t>(random()) &
              (random() % 2 == 0 ? 0x8000'003fu : 0xffff'ffffu);
    }
    SegmentArena arena(table_, memory());
    arena.Recover([&](std::byte*, size_t) { return random() % 2 == 0; });
    while (std::byte* const cell = arena.Allocate(5'000)) {
      std::memset(cell, 0xff, 5'000);
    }
  }
}

}  // namespace
}  // namespace pando
