#include "base/unique_fd.h"

#include <fcntl.h>
#include <unistd.h>

#include <utility>

#include "gtest/gtest.h"

namespace pando {
namespace {

int OpenDescriptor() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }
bool IsOpen(int fd) { return fcntl(fd, F_GETFD) >= 0; }

TEST(UniqueFdTest, ClosesItsDescriptor) {
  const int fd = OpenDescriptor();
  { UniqueFd owner(fd); }
  EXPECT_FALSE(IsOpen(fd));
}

TEST(UniqueFdTest, OneThatWasMovedFromClosesNothing) {
  UniqueFd first(OpenDescriptor());
  const int fd = first.get();
  UniqueFd second(std::move(first));
  EXPECT_FALSE(first.valid());
  EXPECT_EQ(second.get(), fd);
  EXPECT_TRUE(IsOpen(fd));
}

TEST(UniqueFdTest, AReleasedDescriptorStaysOpen) {
  const int fd = UniqueFd(OpenDescriptor()).release();
  EXPECT_TRUE(IsOpen(fd));
  close(fd);
}

}  // namespace
}  // namespace pando
