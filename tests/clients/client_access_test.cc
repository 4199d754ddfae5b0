// Tests that a client reads its credentials from files, and refuses bad ones.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "clients/cpp/src/access.h"

namespace pando {
namespace {

class ClientAccessTest : public testing::Test {
 protected:
  ClientAccessTest() {
    std::string name =
        (std::filesystem::temp_directory_path() / "pando_access_XXXXXX")
            .string();
    folder_ = mkdtemp(name.data());
    std::ofstream(folder_ + "/good") << "PEM";
    std::ofstream(folder_ + "/empty");
  }
  ~ClientAccessTest() override { std::filesystem::remove_all(folder_); }

  // Reads the credentials from files of these names in the folder.
  absl::Status Read(const std::string& ca, const std::string& certificate,
                    const std::string& key) {
    return CredentialsOf(TlsFiles{.ca = folder_ + ca,
                                  .certificate = folder_ + certificate,
                                  .key = folder_ + key})
        .status();
  }

  std::string folder_;
};

TEST_F(ClientAccessTest, EachFileMustBeReadableAndNotEmpty) {
  EXPECT_TRUE(Read("/good", "/good", "/good").ok());
  // The last of these names gives a folder.
  for (const std::string bad : {"/empty", "/none", "/"}) {
    for (const absl::Status& status :
         {Read(bad, "/good", "/good"), Read("/good", bad, "/good"),
          Read("/good", "/good", bad)}) {
      EXPECT_TRUE(absl::IsInvalidArgument(status));
      EXPECT_EQ(status.message(),
                "tls: " + folder_ + bad + " cannot be read, or is empty");
    }
  }
}

}  // namespace
}  // namespace pando
