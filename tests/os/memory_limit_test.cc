#include "os/memory_limit.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace pando {
namespace {

constexpr uint64_t kNone = std::numeric_limits<uint64_t>::max();

class MemoryLimitTest : public testing::Test {
 protected:
  ~MemoryLimitTest() override { std::filesystem::remove_all(mount_); }

  void Write(const std::string& file, const std::string& text) {
    const std::filesystem::path path = mount_ + file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text << '\n';
  }
  uint64_t LimitOf(const std::string& membership) {
    return MemoryLimitOfGroups(membership, mount_);
  }

  const std::string mount_ =
      absl::StrCat(testing::TempDir(), "memory_limit_test.", getpid());
};

TEST_F(MemoryLimitTest, TheLeastOfTheGroupsAboveCounts) {
  Write("/pod/pandod/memory.max", "4096");
  Write("/pod/memory.max", "8192");
  EXPECT_EQ(LimitOf("0::/pod/pandod\n"), 4096u);
  Write("/pod/memory.max", "1024");
  EXPECT_EQ(LimitOf("0::/pod/pandod\n"), 1024u);
  EXPECT_EQ(LimitOf("0::/\n"), kNone);
}

TEST_F(MemoryLimitTest, AContainerSeesItsGroupAsTheUppermost) {
  Write("/memory.max", "4096");
  EXPECT_EQ(LimitOf("0::/\n"), 4096u);
  EXPECT_EQ(LimitOf("0::/of/the/host\n"), 4096u);
}

TEST_F(MemoryLimitTest, GroupsOfTheFirstVersionCount) {
  Write("/memory/pod/memory.limit_in_bytes", "4096");
  Write("/pod/memory.max", "1");
  EXPECT_EQ(LimitOf("8:pids:/pod\n4:memory:/pod\n0::/\n"), 4096u);
}

TEST_F(MemoryLimitTest, WhatSaysNothingIsNoLimit) {
  Write("/pod/memory.max", "max");
  EXPECT_EQ(LimitOf("0::/pod\n"), kNone);
  EXPECT_EQ(LimitOf(""), kNone);
  EXPECT_EQ(LimitOf("0\n0:\n0::pod\n"), kNone);
}

TEST_F(MemoryLimitTest, AProcessMayUseSomeMemory) {
  const auto limit = MemoryLimit();
  ASSERT_TRUE(limit.ok()) << limit.status();
  EXPECT_GT(*limit, 0u);
  const auto free = FreeMemory();
  ASSERT_TRUE(free.ok()) << free.status();
  EXPECT_GT(*free, 0u);
  EXPECT_LE(*free, *limit);
}

}  // namespace
}  // namespace pando
