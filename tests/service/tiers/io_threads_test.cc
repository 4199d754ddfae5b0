#include "service/tiers/io_threads.h"

#include <atomic>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace pando {
namespace {

TEST(IoThreadsTest, EachIndexIsWorkedOnOnce) {
  constexpr size_t kAlignment = 4096;
  IoThreads threads(3, 2 * kAlignment, kAlignment);
  for (const size_t count : {0, 1, 2, 100, 3}) {
    std::vector<std::atomic<int>> calls(count);
    std::atomic<bool> is_aligned = true;
    threads.ForEach(count, [&](size_t i, std::byte* buffer) {
      buffer[2 * kAlignment - 1] = std::byte{1};
      if (reinterpret_cast<uintptr_t>(buffer) % kAlignment != 0) {
        is_aligned = false;
      }
      ++calls[i];
    });
    for (const auto& n : calls) EXPECT_EQ(n, 1);
    EXPECT_TRUE(is_aligned);
  }
}

}  // namespace
}  // namespace pando
