// Tests the file at the path of the memory socket: which users may use the
// file, and which server removes it.

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <system_error>
#include <thread>

#include "gmock/gmock.h"
#include "tests/service/memory_socket_fixture.h"

namespace pando {
namespace {

using ::testing::HasSubstr;

using MemorySocketFileTest = MemorySocketTest;

// Leaves a socket file behind, as a killed server does.
void LeaveSocketFile(const std::string& path) { SocketFor(path, bind); }

TEST_F(MemorySocketFileTest,
       TheSocketFileIsForUserAndGroupAndGoesWithTheServer) {
  auto socket = Start();
  struct stat info;
  ASSERT_EQ(stat(config_.socket.path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0660u);
  socket.reset();
  EXPECT_FALSE(std::filesystem::exists(config_.socket.path));
}

TEST_F(MemorySocketFileTest, TheSocketFileOfADeadServerIsReplaced) {
  LeaveSocketFile(config_.socket.path);
  ASSERT_TRUE(std::filesystem::exists(config_.socket.path));
  const auto socket = Start();
  EXPECT_EQ(Attach(*socket).fds.size(), kShards);
}

TEST_F(MemorySocketFileTest, ItsSuccessorsSocketFileIsLeftAlone) {
  auto first = Start();
  std::filesystem::remove(config_.socket.path);
  const auto second = Start();
  first.reset();
  EXPECT_EQ(Attach(*second).fds.size(), kShards);
}

TEST_F(MemorySocketFileTest, TheSocketOfALiveServerIsLeftAlone) {
  const auto socket = Start();
  const absl::Status status = TryStart().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(status.message(),
            "another server listens on " + config_.socket.path);
  EXPECT_EQ(Attach(*socket).fds.size(), kShards);
}

// Returns how many descriptors of this process refer to `path`.
int DescriptorsOf(const std::string& path) {
  int count = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code is_closed;
    if (std::filesystem::read_symlink(entry, is_closed) == path) ++count;
  }
  return count;
}

// A server locks the folder of its socket from the moment it looks for another
// server until it listens. Here the first server has bound its socket, but does
// not listen yet.
TEST_F(MemorySocketFileTest, TheSocketOfAServerThatIsStartingIsLeftAlone) {
  const UniqueFd folder(open(dir_.c_str(), O_RDONLY | O_DIRECTORY));
  ASSERT_EQ(flock(folder.get(), LOCK_EX), 0);
  const UniqueFd starting = SocketFor(config_.socket.path, bind);
  absl::Status second;
  std::atomic<bool> is_over = false;
  std::thread thread([&] {
    second = TryStart().status();
    is_over = true;
  });
  // The second server has the folder open while it waits for the lock.
  while (!is_over && DescriptorsOf(dir_) < 2) std::this_thread::yield();
  ASSERT_EQ(listen(starting.get(), 1), 0);
  ASSERT_EQ(flock(folder.get(), LOCK_UN), 0);
  thread.join();
  EXPECT_EQ(second.message(),
            "another server listens on " + config_.socket.path);
  EXPECT_TRUE(std::filesystem::exists(config_.socket.path));
}

TEST_F(MemorySocketFileTest, AFileThatIsNoSocketIsLeftAlone) {
  ASSERT_TRUE(UniqueFd(creat(config_.socket.path.c_str(), 0600)).valid());
  EXPECT_EQ(TryStart().status().message(),
            config_.socket.path + " exists and is not a socket");
  EXPECT_TRUE(std::filesystem::is_regular_file(config_.socket.path));
}

TEST_F(MemorySocketFileTest, APathThatIsTooLongIsRefusedWithTheLimit) {
  config_.socket.path = dir_ + "/" + std::string(200, 'x');
  EXPECT_THAT(std::string(TryStart().status().message()),
              HasSubstr("must have from 1 to 107"));
}

}  // namespace
}  // namespace pando
