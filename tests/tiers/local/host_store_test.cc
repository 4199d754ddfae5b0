#include "tiers/local/host_store.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pando {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

constexpr uint64_t kBlockBytes = 1000;
constexpr uint64_t kSlotBytes = 1024;

// Returns the kernel's flags for the memory that contains an address.
std::string FlagsOf(const void* address) {
  const auto wanted = reinterpret_cast<uintptr_t>(address);
  std::ifstream maps("/proc/self/smaps");
  bool is_in_it = false;
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0;
    unsigned long end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) {
      is_in_it = begin <= wanted && wanted < end;
    }
    if (is_in_it && line.starts_with("VmFlags:")) return line + " ";
  }
  return "";
}

TEST(HostStoreTest, BlocksAreReadBackFromAsManySlotsAsFit) {
  auto made = HostStore::Make(10 * kSlotBytes + 1023, kBlockBytes);
  ASSERT_TRUE(made.ok()) << made.status();
  const HostStore& store = **made;
  ASSERT_EQ(store.slots(), 10u);
  EXPECT_EQ(store.buffer_bytes(), 0u);
  for (uint32_t slot = 0; slot < store.slots(); ++slot) {
    std::byte* const block = store.BlockFor(slot, nullptr);
    std::memset(block, static_cast<int>(slot), kBlockBytes);
    EXPECT_EQ(store.PartOf(slot).bytes, 0u);
  }
  for (uint32_t slot = 0; slot < store.slots(); ++slot) {
    const std::byte* const block = store.BlockFor(slot, nullptr);
    EXPECT_TRUE(
        std::all_of(block, block + kBlockBytes, [&](const std::byte byte) {
          return byte == static_cast<std::byte>(slot);
        }));
  }
}

TEST(HostStoreTest, PromptsAreNotInCoreDumps) {
  const auto store = HostStore::Make(1 << 20, kBlockBytes);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_THAT(FlagsOf((*store)->BlockFor(0, nullptr)), HasSubstr(" dd "));
}

std::string RefusalOf(uint64_t max_bytes) {
  return std::string(
      HostStore::Make(max_bytes, kBlockBytes).status().message());
}

TEST(HostStoreTest, LessThanAPageIsRefused) {
  EXPECT_THAT(
      RefusalOf(kSlotBytes - 1),
      HasSubstr(
          "tier-host-bytes is 1023; must be at least 1024, for one page"));
}

TEST(HostStoreTest, MoreThanTheMachineHasIsRefused) {
  EXPECT_THAT(RefusalOf(uint64_t{1} << 52),
              ContainsRegex("tier-host-bytes is 4503599627370496; pandod may "
                            "use [0-9]+ bytes of memory"));
}

}  // namespace
}  // namespace pando
