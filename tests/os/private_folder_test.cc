#include "os/private_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pando {
namespace {

using ::testing::HasSubstr;

class PrivateFolderTest : public testing::Test {
 protected:
  PrivateFolderTest() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directory(folder_);
    chmod(folder_.c_str(), 0700);
  }
  ~PrivateFolderTest() override { std::filesystem::remove_all(folder_); }

  std::string Refusal() const {
    return std::string(CheckPrivateFolder("tier", folder_).message());
  }

  const std::string folder_ =
      absl::StrCat(testing::TempDir(), "private_folder_", getpid());
};

TEST_F(PrivateFolderTest, OneThatOthersOnlyReadIsTaken) {
  chmod(folder_.c_str(), 0755);
  EXPECT_EQ(Refusal(), "");
}

TEST_F(PrivateFolderTest, OneThatOthersMayWriteToIsRefused) {
  for (const mode_t mode : {0770, 0707}) {
    chmod(folder_.c_str(), mode);
    EXPECT_THAT(Refusal(), HasSubstr("only its owner may have the right to"));
  }
}

TEST_F(PrivateFolderTest, OneOfAnotherUserIsRefused) {
  if (geteuid() != 0)
    GTEST_SKIP() << "only root gives a folder to another user";
  constexpr uid_t kOther = 12'345;
  ASSERT_EQ(chown(folder_.c_str(), kOther, kOther), 0);
  EXPECT_THAT(Refusal(), HasSubstr("belongs to user 12345; must belong to"));
}

TEST_F(PrivateFolderTest, WhatIsNoFolderIsRefused) {
  std::filesystem::remove(folder_);
  EXPECT_THAT(Refusal(), HasSubstr("find the folder"));
  std::ofstream(folder_) << "a file";
  EXPECT_THAT(Refusal(), HasSubstr("is no folder"));
}

}  // namespace
}  // namespace pando
