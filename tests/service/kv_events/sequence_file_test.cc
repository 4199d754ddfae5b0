#include "service/kv_events/sequence_file.h"

#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

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

TEST_F(SequenceFileTest, AFolderThatIsNotThereIsNamed) {
  const auto file = SequenceFile::Open("/nowhere/sequence", kNow);
  EXPECT_THAT(std::string(file.status().message()),
              HasSubstr("open /nowhere/sequence"));
}

}  // namespace
}  // namespace pando
