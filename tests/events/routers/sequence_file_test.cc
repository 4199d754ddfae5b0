#include "events/routers/sequence_file.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pando {
namespace {

using testing::HasSubstr;

constexpr int64_t kMicros = 1'700'000'000'000'000;
const absl::Time kNow = absl::FromUnixMicros(kMicros);

class SequenceFileTest : public testing::Test {
 protected:
  SequenceFileTest() { std::filesystem::remove(path_); }
  ~SequenceFileTest() override { std::filesystem::remove(path_); }

  const std::string path_ =
      absl::StrCat(testing::TempDir(), "sequence_file_test.", getpid());
};

TEST_F(SequenceFileTest, ANewCountBeginsAtTheWallClock) {
  const auto file = SequenceFile::Open(path_, kNow);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->Next(), kMicros);
  EXPECT_EQ((*file)->Next(), kMicros + 1);
}

TEST_F(SequenceFileTest, TheCountGoesOnAfterAProcessWasKilled) {
  if (fork() == 0) {
    const auto file = SequenceFile::Open(path_, kNow);
    for (int i = 0; i < 5; ++i) (*file)->Next();
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  wait(&status);
  ASSERT_TRUE(WIFSIGNALED(status));
  const auto file = SequenceFile::Open(path_, absl::UnixEpoch());
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->Next(), kMicros + 5);
}

TEST_F(SequenceFileTest, AFileOfSomebodyElseIsLeftAsItIs) {
  for (const std::string content : {"words", "sixteen letters!"}) {
    std::ofstream(path_) << content;
    const auto file = SequenceFile::Open(path_, kNow);
    EXPECT_THAT(std::string(file.status().message()),
                HasSubstr("is no sequence file"));
    std::string left;
    std::getline(std::ifstream(path_), left);
    EXPECT_EQ(left, content);
  }
}

TEST_F(SequenceFileTest, NoTwoProcessesCountInOneFile) {
  auto file = SequenceFile::Open(path_, kNow);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(std::string(SequenceFile::Open(path_, kNow).status().message()),
              HasSubstr("another server counts its frames in " + path_));
  *file = nullptr;
  EXPECT_TRUE(SequenceFile::Open(path_, kNow).ok());
}

TEST_F(SequenceFileTest, ALinkIsNotFollowed) {
  const std::string victim = path_ + ".victim";
  std::ofstream{victim};
  std::filesystem::create_symlink(victim, path_);
  const auto file = SequenceFile::Open(path_, kNow);
  EXPECT_THAT(std::string(file.status().message()), HasSubstr("open " + path_));
  EXPECT_EQ(std::filesystem::file_size(victim), 0);
  std::filesystem::remove(victim);
}

// A child process mounts the file system, so that no other process sees it.
TEST_F(SequenceFileTest, AFileSystemWithoutRoomIsAnErrorAndNoCrash) {
  std::filesystem::create_directory(path_);
  enum : int { kSaidSo, kSaidNothing, kCannotMount };
  const pid_t child = fork();
  if (child == 0) {
    if ((unshare(CLONE_NEWNS) != 0 &&
         unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) ||
        mount("none", path_.c_str(), "tmpfs", 0, "size=64k") != 0) {
      _exit(kCannotMount);
    }
    std::ofstream(path_ + "/full") << std::string(1'000'000, 'x');
    const auto file = SequenceFile::Open(path_ + "/sequence", kNow);
    const bool said =
        absl::StrContains(file.status().message(), "make room for");
    umount(path_.c_str());
    _exit(said ? kSaidSo : kSaidNothing);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
  if (WEXITSTATUS(status) == kCannotMount) {
    GTEST_SKIP() << "no file system can be mounted here";
  }
  EXPECT_EQ(WEXITSTATUS(status), kSaidSo);
}

TEST_F(SequenceFileTest, AFolderThatIsNotThereIsNamed) {
  const auto file = SequenceFile::Open("/nowhere/sequence", kNow);
  EXPECT_THAT(std::string(file.status().message()),
              HasSubstr("open /nowhere/sequence"));
}

}  // namespace
}  // namespace pando
