// Tests the memory that pages pass through.
#include "tiers/copying/transfer_memory.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace pando {
namespace {

TEST(TransferMemory, BlocksAndTheHostTierDoNotOverlap) {
  const auto memory = TransferMemory::Make(5000, 10'000).value();
  const TransferMemory::Block one = memory->Take();
  const TransferMemory::Block other = memory->Take();
  const uint64_t begins[] = {*memory->OffsetOf(one.data()),
                             *memory->OffsetOf(other.data())};
  const auto [first, last] = std::minmax(begins[0], begins[1]);
  EXPECT_GE(last, first + 5000);
  EXPECT_GE(*memory->OffsetOf(memory->host_tier().data()), last + 5000);
  EXPECT_LE(*memory->OffsetOf(memory->host_tier().data()) + 10'000,
            memory->size_bytes());
}

TEST(TransferMemory, ABlockIsHeldByOneAtATime) {
  const auto memory = TransferMemory::Make(64, 0).value();
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int i = 1; i <= 16; ++i) {
    threads.emplace_back([&, mark = std::byte(i)] {
      for (int n = 0; n < 1000; ++n) {
        const TransferMemory::Block block = memory->Take();
        std::fill_n(block.data(), 64, mark);
        std::this_thread::yield();
        for (int b = 0; b < 64; ++b) wrong += block.data()[b] != mark;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(TransferMemory, OtherMemoryHasNoPlaceInIt) {
  const auto memory = TransferMemory::Make(64, 100).value();
  std::byte other;
  EXPECT_FALSE(memory->OffsetOf(&other).has_value());
  EXPECT_FALSE(memory->OffsetOf(nullptr).has_value());
  const std::byte* const first = memory->host_tier().data();
  EXPECT_TRUE(memory->OffsetOf(first).has_value());
}

}  // namespace
}  // namespace pando
