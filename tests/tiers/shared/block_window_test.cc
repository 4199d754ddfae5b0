#include "tiers/shared/block_window.h"

#include <cstddef>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"

namespace pando {
namespace {

constexpr size_t kLarge = size_t{2} << 20;
constexpr size_t kSmall = 1000;

std::vector<size_t> PartsOf(BlockWindow& window) {
  std::vector<size_t> parts;
  while (true) {
    const std::span<RemoteStore::Transfer> part = window.TakePart();
    if (part.empty()) return parts;
    parts.push_back(part.size());
  }
}

TEST(BlockWindowTest, LargeBlocksAreTakenOneByOneAndSmallOnesTogether) {
  BlockWindow large(3 * kLarge);
  large.Begin(3, kLarge);
  EXPECT_EQ(PartsOf(large), (std::vector<size_t>{1, 1, 1}));
  BlockWindow small(32 * kSmall);
  small.Begin(10, kSmall);
  EXPECT_EQ(PartsOf(small), (std::vector<size_t>{3, 3, 3, 1}));
  small.Begin(0, kSmall);
  EXPECT_TRUE(PartsOf(small).empty());
}

TEST(BlockWindowTest, EachBlockHasMemoryOfItsOwnAndHasTimedOutAtFirst) {
  BlockWindow window(4 * kSmall);
  const std::span<RemoteStore::Transfer> blocks = window.Begin(4, kSmall);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(absl::IsDeadlineExceeded(blocks[i].status));
    EXPECT_EQ(blocks[i].value.size(), kSmall);
    EXPECT_EQ(blocks[i].value.data(), blocks[0].value.data() + i * kSmall);
  }
}

TEST(BlockWindowTest, TheFrontEndsWithTheFirstBlockThatHasNotCome) {
  BlockWindow window(4 * kSmall);
  for (int round = 0; round < 2; ++round) {
    const std::span<RemoteStore::Transfer> blocks = window.Begin(4, kSmall);
    for (const size_t number : {3, 0, 1}) {
      window.Place(blocks[number], [&](size_t placed) {
        EXPECT_EQ(placed, number);
        return absl::OkStatus();
      });
    }
    const BlockWindow::Placed placed = window.Close();
    EXPECT_EQ(placed.front, 2u);
    EXPECT_TRUE(placed.status.ok());
  }
}

TEST(BlockWindowTest, WhatComesAfterItWasClosedIsNotPlaced) {
  BlockWindow window(2 * kSmall);
  const std::span<RemoteStore::Transfer> blocks = window.Begin(2, kSmall);
  EXPECT_EQ(window.Close().front, 0u);
  window.Place(blocks[0], [](size_t) {
    ADD_FAILURE() << "placed";
    return absl::OkStatus();
  });
}

TEST(BlockWindowTest, ABlockThatCannotBePlacedClosesIt) {
  BlockWindow window(3 * kSmall);
  const std::span<RemoteStore::Transfer> blocks = window.Begin(3, kSmall);
  int calls = 0;
  for (const RemoteStore::Transfer& block : blocks) {
    window.Place(block, [&](size_t number) {
      ++calls;
      return number == 1 ? absl::UnavailableError("no") : absl::OkStatus();
    });
  }
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(window.Close().front, 1u);
  EXPECT_TRUE(absl::IsUnavailable(window.Close().status));
}

}  // namespace
}  // namespace pando
