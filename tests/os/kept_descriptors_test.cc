#include "os/keeping/kept_descriptors.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.h"

namespace pando {
namespace {

using FileId = std::pair<dev_t, ino_t>;

constexpr int kFirst = 3;
constexpr int kOpened = 16;

FileId FileOf(int fd) {
  struct stat info = {};
  EXPECT_EQ(fstat(fd, &info), 0);
  return {info.st_dev, info.st_ino};
}

UniqueFd Memory() { return UniqueFd(memfd_create("test", MFD_CLOEXEC)); }

// Makes a socket that stands for a keeper: the socket receives messages that no
// test reads.
class KeptDescriptorsTest : public testing::Test {
 protected:
  KeptDescriptorsTest() {
    sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = {}};
    path_.copy(address.sun_path, sizeof(address.sun_path) - 1);
    EXPECT_EQ(bind(keeper_.get(), reinterpret_cast<sockaddr*>(&address),
                   sizeof(address)),
              0);
    setenv("NOTIFY_SOCKET", path_.c_str(), 1);
  }
  ~KeptDescriptorsTest() override {
    unsetenv("NOTIFY_SOCKET");
    std::filesystem::remove(path_);
  }

  const std::string path_ = testing::TempDir() + "/keeper.sock";
  const UniqueFd keeper_{socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
};

TEST_F(KeptDescriptorsTest, ThoseOfThreadsStayWhenOthersArePassedOn) {
  // `before` is never deleted, because the descriptors that it passes on belong
  // to `after`.
  static auto* const before =
      new KeptDescriptors(KeptDescriptors::FromEnvironment().value());
  std::vector<UniqueFd> of_threads;
  for (int i = 0; i < kOpened; ++i) of_threads.push_back(Memory());
  std::map<std::string, FileId> kept;
  for (const std::string name : {"one", "two", "three"}) {
    const UniqueFd memory = Memory();
    kept[name] = FileOf(memory.get());
    before->Keep(name, memory);
  }
  std::map<int, FileId> files;
  for (const UniqueFd& fd : of_threads) files[fd.get()] = FileOf(fd.get());
  ASSERT_LT(files.begin()->first, kFirst + 3);

  before->PassOn();

  for (const auto& [fd, file] : files) EXPECT_EQ(FileOf(fd), file) << fd;
  KeptDescriptors after = KeptDescriptors::FromEnvironment().value();
  for (const auto& [name, file] : kept) {
    EXPECT_EQ(FileOf(after.Take(name).get()), file) << name;
  }
}

}  // namespace
}  // namespace pando
