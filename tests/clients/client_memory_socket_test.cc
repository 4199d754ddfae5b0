// Tests the client's side of the memory socket, against a server that may say
// anything.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "clients/cpp/src/memory_socket.h"

namespace pando {
namespace {

const std::string kToken = "0123456789abcdef";

template <typename T>
std::string Bytes(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}

std::string Header(uint32_t version, uint32_t status, uint32_t shards) {
  return "PNDO" + Bytes(version) + Bytes(status) + Bytes(shards);
}

void SendWith(int socket, const std::string& bytes,
              const std::vector<UniqueFd>& descriptors) {
  alignas(cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))] = {};
  iovec body = {const_cast<char*>(bytes.data()), bytes.size()};
  msghdr message = {};
  message.msg_iov = &body;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
  cmsghdr* rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
  for (size_t i = 0; i < descriptors.size(); ++i) {
    const int fd = descriptors[i].get();
    std::memcpy(CMSG_DATA(rights) + i * sizeof(int), &fd, sizeof(int));
  }
  EXPECT_EQ(sendmsg(socket, &message, 0), static_cast<ssize_t>(bytes.size()));
}

std::vector<UniqueFd> Memory(const std::vector<off_t>& sizes) {
  std::vector<UniqueFd> memory;
  for (const off_t size : sizes) {
    memory.emplace_back(memfd_create("shard", MFD_CLOEXEC));
    EXPECT_EQ(ftruncate(memory.back().get(), size), 0);
  }
  return memory;
}

class MemorySocketClientTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string folder = testing::TempDir() + "pando-XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    path_ = folder + "/memory.sock";
    listener_ = UniqueFd(socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof(address.sun_path) - 1);
    ASSERT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address),
                   sizeof(address)),
              0);
    ASSERT_EQ(listen(listener_.get(), 1), 0);
  }

  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Receives from a server that answers the token with `answer`.
  absl::StatusOr<ReceivedMemory> Receive(
      const std::function<void(int socket)>& answer,
      absl::Duration timeout = absl::Seconds(30)) {
    std::thread server([&] {
      const UniqueFd peer(accept(listener_.get(), nullptr, nullptr));
      std::string token(kToken.size(), '\0');
      EXPECT_EQ(recv(peer.get(), token.data(), token.size(), MSG_WAITALL),
                static_cast<ssize_t>(token.size()));
      EXPECT_EQ(token, kToken);
      answer(peer.get());
    });
    absl::StatusOr<ReceivedMemory> shards =
        ReceiveMemory(path_, kToken, timeout);
    server.join();
    return shards;
  }

  absl::Status ErrorAfter(const std::string& bytes) {
    return Receive([&](int socket) {
             EXPECT_EQ(send(socket, bytes.data(), bytes.size(), 0),
                       static_cast<ssize_t>(bytes.size()));
           })
        .status();
  }

  std::filesystem::path folder_;
  std::string path_;
  UniqueFd listener_;
};

TEST_F(MemorySocketClientTest, ReceivesADescriptorForEachShard) {
  const std::vector<UniqueFd> memory = Memory({4096, 8192});
  const auto shards = Receive([&](int socket) {
    SendWith(socket,
             Header(1, 0, 2) + Bytes(uint64_t{4096}) + Bytes(uint64_t{8192}),
             memory);
  });
  ASSERT_TRUE(shards.ok()) << shards.status();
  EXPECT_EQ(shards->sizes, (std::vector<uint64_t>{4096, 8192}));
  ASSERT_EQ(shards->descriptors.size(), 2u);
  struct stat file;
  ASSERT_EQ(fstat(shards->descriptors[1].get(), &file), 0);
  EXPECT_EQ(file.st_size, 8192);
}

TEST_F(MemorySocketClientTest, AnAnswerInPiecesIsPutTogether) {
  const std::vector<UniqueFd> memory = Memory({4096});
  const auto shards = Receive([&](int socket) {
    const std::string bytes = Header(1, 0, 1) + Bytes(uint64_t{4096});
    SendWith(socket, bytes.substr(0, 3), memory);
    for (const char byte : bytes.substr(3)) {
      ASSERT_EQ(send(socket, &byte, 1, 0), 1);
    }
  });
  ASSERT_TRUE(shards.ok()) << shards.status();
  EXPECT_EQ(shards->descriptors.size(), 1u);
}

TEST_F(MemorySocketClientTest, ATokenThatIsRefusedIsPermissionDenied) {
  EXPECT_TRUE(absl::IsPermissionDenied(ErrorAfter(Header(1, 1, 0))));
}

TEST_F(MemorySocketClientTest, AnotherVersionIsUnimplemented) {
  EXPECT_TRUE(absl::IsUnimplemented(ErrorAfter(Header(2, 0, 1))));
}

TEST_F(MemorySocketClientTest, AnotherKindOfServerIsRecognised) {
  EXPECT_TRUE(absl::IsInternal(ErrorAfter("HTTP/1.1 400 Bad")));
}

TEST_F(MemorySocketClientTest, AnAbsurdNumberOfShardsIsRefused) {
  EXPECT_TRUE(absl::IsInternal(ErrorAfter(Header(1, 0, 0xffffffff))));
}

TEST_F(MemorySocketClientTest, MissingDescriptorsAreNoticed) {
  EXPECT_TRUE(
      absl::IsInternal(ErrorAfter(Header(1, 0, 1) + Bytes(uint64_t{4096}))));
}

TEST_F(MemorySocketClientTest, AServerThatHangsUpIsUnavailable) {
  EXPECT_TRUE(absl::IsUnavailable(ErrorAfter("PN")));
}

TEST_F(MemorySocketClientTest, ASilentServerIsNotWaitedForForever) {
  const auto shards = Receive(
      [](int socket) {
        // The server is silent until the client gives up.
        char byte;
        recv(socket, &byte, 1, 0);
      },
      absl::Milliseconds(10));
  EXPECT_FALSE(shards.ok());
}

TEST_F(MemorySocketClientTest, ASocketThatIsNotThereIsAnError) {
  EXPECT_TRUE(absl::IsNotFound(
      ReceiveMemory(path_ + ".gone", kToken, absl::Seconds(30)).status()));
}

TEST_F(MemorySocketClientTest, APathTooLongForASocketIsAnError) {
  EXPECT_TRUE(absl::IsInvalidArgument(
      ReceiveMemory(std::string(200, 'x'), kToken, absl::Seconds(30))
          .status()));
}

}  // namespace
}  // namespace pando
