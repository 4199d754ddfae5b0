#include "os/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "base/unique_fd.h"
#include "gtest/gtest.h"

namespace pando {
namespace {

TEST(SharedMemoryTest, AnotherProcessTakesOverWhatOneHasMade) {
  auto made =
      SharedMemory::Create("test", 8'192, SharedMemory::Peers::kMayWrite);
  ASSERT_TRUE(made.ok()) << made.status();
  made->data()[5'000] = std::byte{42};
  const auto taken = SharedMemory::Adopt(Duplicate(made->fd()).value());
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_EQ(taken->size(), 8'192u);
  EXPECT_EQ(taken->data()[5'000], std::byte{42});
}

// A process that can shrink the memory could make this process fault.
TEST(SharedMemoryTest, WhatIsNotSealedIsNotTakenOver) {
  UniqueFd unsealed(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(unsealed.get(), 8'192), 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(
      SharedMemory::Adopt(std::move(unsealed)).status()));
  UniqueFd no_memory(open("/dev/null", O_RDWR | O_CLOEXEC));
  EXPECT_TRUE(absl::IsFailedPrecondition(
      SharedMemory::Adopt(std::move(no_memory)).status()));
}

}  // namespace
}  // namespace pando
