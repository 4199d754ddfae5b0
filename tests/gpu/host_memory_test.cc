// Tests host memory that one process makes and the next one takes over.
#include "gpu/host_memory.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "absl/status/status.h"

namespace pando {
namespace {

using testing::HasSubstr;

constexpr uint64_t kBytes = 8192;

UniqueFd CopyOf(const UniqueFd& fd) {
  return UniqueFd(fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
}

HostMemory Made() { return HostMemory::Create("memory", kBytes).value(); }

ino_t FileOf(const UniqueFd& fd) {
  struct stat info;
  EXPECT_EQ(fstat(fd.get(), &info), 0);
  return info.st_ino;
}

std::string WhyRefused(UniqueFd fd, uint64_t bytes = kBytes) {
  const auto taken = HostMemory::Adopt("memory", bytes, std::move(fd));
  return taken.ok() ? "" : std::string(taken.status().message());
}

TEST(HostMemoryTest, WhatIsTakenOverIsTheSameMemory) {
  const HostMemory first = Made();
  const HostMemory second =
      HostMemory::Adopt("memory", kBytes, CopyOf(first.fd())).value();
  EXPECT_EQ(FileOf(first.fd()), FileOf(second.fd()));
  EXPECT_EQ(second.bytes(), kBytes);
}

TEST(HostMemoryTest, MemoryOfAnotherSizeIsRefusedWithBothSizes) {
  EXPECT_EQ(WhyRefused(CopyOf(Made().fd()), 4096),
            "memory cannot be taken over: it has 8192 bytes, not 4096");
}

TEST(HostMemoryTest, WhatCouldShrinkUnderOthersIsRefused) {
  UniqueFd unsealed(memfd_create("memory", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(unsealed.get(), kBytes), 0);
  EXPECT_THAT(WhyRefused(std::move(unsealed)), HasSubstr("no memory"));
  EXPECT_THAT(WhyRefused(UniqueFd(open("/dev/null", O_RDWR | O_CLOEXEC))),
              HasSubstr("no memory"));
}

TEST(HostMemoryTest, MemoryIsTakenOverWhereTheSystemForbidsToExecuteIt) {
  constexpr unsigned kNoExec = 8;  // MFD_NOEXEC_SEAL of newer headers
  UniqueFd fd(memfd_create("memory", MFD_CLOEXEC | kNoExec));
  if (!fd.valid()) GTEST_SKIP() << "the kernel has no such seal";
  ASSERT_EQ(ftruncate(fd.get(), kBytes), 0);
  ASSERT_EQ(
      fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL),
      0);
  EXPECT_EQ(WhyRefused(std::move(fd)), "");
}

TEST(HostMemoryTest, WritersOfBeforeAreKnownUntilTheyLetGo) {
  auto first = std::make_unique<HostMemory>(Made());
  UniqueFd writer = first->ExportTo(WriterId(7)).value();
  UniqueFd other = first->ExportTo(WriterId(3)).value();
  const HostMemory second =
      HostMemory::Adopt("memory", kBytes, CopyOf(first->fd())).value();
  first.reset();
  EXPECT_EQ(second.LastWriter().value(), WriterId(7));
  EXPECT_TRUE(second.IsHeldByAnyUpTo(WriterId(7)));
  // A writer that `second` itself lets in does not count as an earlier one.
  const UniqueFd later = second.ExportTo(WriterId(8)).value();
  writer = UniqueFd();
  EXPECT_TRUE(second.IsHeldByAnyUpTo(WriterId(7)));
  other = UniqueFd();
  EXPECT_FALSE(second.IsHeldByAnyUpTo(WriterId(7)));
  EXPECT_TRUE(second.IsHeldBy(WriterId(8)));
}

TEST(HostMemoryTest, WithoutWritersThereIsNoLastOne) {
  const HostMemory memory = Made();
  EXPECT_EQ(memory.LastWriter().value(), WriterId(0));
  EXPECT_FALSE(memory.IsHeldByAnyUpTo(WriterId(0)));
}

TEST(HostMemoryTest, LocksThatNoPandodTakesAreAnError) {
  const HostMemory memory = Made();
  const UniqueFd worker = memory.ExportTo(WriterId(1)).value();
  struct flock lock = {};
  lock.l_type = F_RDLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = 5;  // from byte 5 to the end
  ASSERT_EQ(fcntl(worker.get(), F_OFD_SETLK, &lock), 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(memory.LastWriter().status()));
}

}  // namespace
}  // namespace pando
