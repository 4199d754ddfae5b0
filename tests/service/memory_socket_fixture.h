#ifndef PANDO_TESTS_SERVICE_MEMORY_SOCKET_FIXTURE_H_
#define PANDO_TESTS_SERVICE_MEMORY_SOCKET_FIXTURE_H_

#include <sys/socket.h>
#include <sys/un.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/unique_fd.h"
#include "gpu/host_kv_pool.h"
#include "gtest/gtest.h"
#include "service/memory/memory_socket.h"

namespace pando {

inline constexpr uint32_t kShards = 3;
inline constexpr SessionId kSession{77};

// A message that a peer received, and the descriptors that came with it.
struct Answer {
  std::string message;
  std::vector<UniqueFd> fds;

  uint32_t Word(size_t offset) const {
    uint32_t word = 0;
    std::memcpy(&word, message.data() + offset, sizeof(word));
    return word;
  }
  uint32_t status() const { return Word(8); }
  uint32_t count() const { return Word(12); }
  uint64_t SizeOfShard(size_t index) const {
    uint64_t size = 0;
    std::memcpy(&size, message.data() + 16 + 8 * index, sizeof(size));
    return size;
  }
};

// Returns a socket after calling `act`, which is bind or connect, on the socket
// with `path`.
template <typename Act>
UniqueFd SocketFor(const std::string& path, Act act) {
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, path.size());
  EXPECT_EQ(
      act(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0)
      << std::strerror(errno);
  return fd;
}

inline UniqueFd Connect(const std::string& path) {
  return SocketFor(path, connect);
}

inline void Write(const UniqueFd& fd, std::string_view bytes) {
  EXPECT_EQ(send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(bytes.size()));
}

// Receives one message. Returns an empty one if the server closed the
// connection without an answer.
inline Answer Receive(const UniqueFd& fd) {
  char bytes[4096];
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * 253)];
  iovec body = {bytes, sizeof(bytes)};
  msghdr header = {};
  header.msg_iov = &body;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof(control);
  const ssize_t size = recvmsg(fd.get(), &header, MSG_CMSG_CLOEXEC);
  Answer answer;
  if (size > 0) answer.message.assign(bytes, static_cast<size_t>(size));
  if (const cmsghdr* rights = CMSG_FIRSTHDR(&header)) {
    const size_t count = (rights->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int received;
      std::memcpy(&received, CMSG_DATA(rights) + i * sizeof(int), sizeof(int));
      answer.fds.emplace_back(received);
    }
  }
  return answer;
}

inline std::string Bytes(const AttachToken& token) {
  return std::string(token.data(), token.size());
}

inline constexpr std::nullopt_t kAnybody = std::nullopt;

// A memory socket over a pool in host memory, and functions that act as its
// peers.
class MemorySocketTest : public testing::Test {
 protected:
  MemorySocketTest() {
    std::string name =
        (std::filesystem::temp_directory_path() / "pando_memory_socket_XXXXXX")
            .string();
    dir_ = mkdtemp(name.data());
    config_.socket.path = dir_ + "/memory.sock";
    config_.peer_deadline = absl::Hours(1);
  }
  ~MemorySocketTest() override { std::filesystem::remove_all(dir_); }

  absl::StatusOr<std::unique_ptr<MemorySocket>> TryStart() {
    return MemorySocket::Start(
        config_,
        [this](const AttachGrant& grant, const UnixPeer& peer)
            -> absl::StatusOr<std::vector<SharedDescriptor>> {
          absl::MutexLock lock(&mutex_);
          attached_.emplace_back(grant.session, peer.pid);
          if (sessions_ended_) return absl::FailedPreconditionError("over");
          std::vector<SharedDescriptor> shards;
          for (uint32_t i = 0; i < kShards; ++i) {
            shards.push_back(
                {pool_->ExportShard(i).value(), pool_->shards()[i].size_bytes});
          }
          return shards;
        });
  }
  std::unique_ptr<MemorySocket> Start() { return TryStart().value(); }

  std::vector<std::pair<SessionId, pid_t>> attached() {
    absl::MutexLock lock(&mutex_);
    return attached_;
  }

  Answer Attach(MemorySocket& socket, SessionId session = kSession) {
    const std::string token =
        Bytes(socket.IssueToken({session}, kAnybody).value());
    const UniqueFd peer = Connect(socket.path());
    Write(peer, token);
    return Receive(peer);
  }

  const std::unique_ptr<KvPool> pool_ =
      HostKvPool::Create({.layers = 2,
                          .kv_planes = 2,
                          .heads = 2,
                          .head_size = 8,
                          .dtype = DType::kFloat16,
                          .page_tokens = 16,
                          .order = LayoutOrder::kLayerFirst},
                         64, kShards)
          .value();
  std::string dir_;
  MemorySocket::Config config_;
  absl::Mutex mutex_;
  std::vector<std::pair<SessionId, pid_t>> attached_ ABSL_GUARDED_BY(mutex_);
  std::atomic<bool> sessions_ended_ = false;
};

}  // namespace pando

#endif  // PANDO_TESTS_SERVICE_MEMORY_SOCKET_FIXTURE_H_
