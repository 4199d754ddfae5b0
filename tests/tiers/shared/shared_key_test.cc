#include "tiers/shared/shared_key.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pando {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::span<const std::byte> BytesOf(std::string_view text) {
  return std::as_bytes(std::span(text));
}

class SharedKeyTest : public testing::Test {
 protected:
  ~SharedKeyTest() override { std::filesystem::remove(path_); }

  absl::StatusOr<std::unique_ptr<SharedKey>> Read(const std::string& secret,
                                                  mode_t mode = 0600) {
    std::ofstream(path_) << secret;
    EXPECT_EQ(chmod(path_.c_str(), mode), 0);
    return SharedKey::Read(path_);
  }

  const std::string path_ = std::filesystem::temp_directory_path() /
                            absl::StrCat("shared_key_test.", getpid());
  const std::string secret_ = std::string(SharedKey::kMinBytes, 's');
};

// The key, the text and the signature are the second test case of RFC 4231.
TEST_F(SharedKeyTest, ASignatureIsTheHmacOfBothParts) {
  const SharedKey key(BytesOf("Jefe"));
  const SharedKey::Mac mac =
      key.Sign(BytesOf("what do ya want "), BytesOf("for nothing?"));
  EXPECT_EQ(absl::BytesToHexString(absl::string_view(
                reinterpret_cast<const char*>(mac.data()), mac.size())),
            "5bdcc146bf60754e6a042426089575c7"
            "5a003f089d2739839dec58b964ec3843");
}

TEST_F(SharedKeyTest, EachKeyAndDigestHasADigestOfItsOwn) {
  const SharedKey key(BytesOf("one"));
  EXPECT_EQ(key.DigestOf(7), SharedKey(BytesOf("one")).DigestOf(7));
  EXPECT_NE(key.DigestOf(7), SharedKey(BytesOf("two")).DigestOf(7));
  EXPECT_NE(key.DigestOf(7), key.DigestOf(8));
  EXPECT_NE(key.DigestOf(7), 7u);
}

TEST_F(SharedKeyTest, AllBytesOfTheFileAreTheSecret) {
  const auto key = Read(secret_ + "\n");
  ASSERT_TRUE(key.ok()) << key.status();
  EXPECT_EQ((*key)->DigestOf(7),
            SharedKey(BytesOf(secret_ + "\n")).DigestOf(7));
}

TEST_F(SharedKeyTest, AFileThatOthersMayReadIsRefused) {
  for (const mode_t mode : {0604, 0640, 0660, 0666}) {
    const auto key = Read(secret_, mode);
    ASSERT_FALSE(key.ok()) << mode;
    EXPECT_THAT(key.status().message(), HasSubstr("whose mode is 06")) << mode;
  }
  EXPECT_TRUE(Read(secret_, 0400).ok());
}

TEST_F(SharedKeyTest, ASecretOfAnotherLengthIsRefusedAndNotTold) {
  for (const std::string& secret :
       {std::string(), secret_.substr(1),
        std::string(SharedKey::kMaxBytes + 1, 's')}) {
    const auto key = Read(secret);
    ASSERT_FALSE(key.ok()) << secret.size();
    EXPECT_THAT(key.status().message(),
                HasSubstr(absl::StrCat("has ", secret.size(),
                                       " bytes; must have 32 to 4096")));
    EXPECT_THAT(key.status().message(), Not(HasSubstr("sss")));
  }
}

TEST_F(SharedKeyTest, WhatIsNoFileIsRefused) {
  EXPECT_THAT(SharedKey::Read("/dev/zero").status().message(),
              HasSubstr("which is no file"));
  EXPECT_THAT(SharedKey::Read(path_).status().message(),
              HasSubstr("tier-shared-key-file: open " + path_));
}

}  // namespace
}  // namespace pando
