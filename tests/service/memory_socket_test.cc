#include <fcntl.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <deque>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "gmock/gmock.h"
#include "gpu/host_kv_pool.h"
#include "gtest/gtest.h"
#include "os/sockets/unix_listener.h"
#include "tests/service/memory_socket_fixture.h"

namespace pando {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

TEST_F(MemorySocketTest, ATokenOfASessionThatEndedGetsNoDescriptor) {
  const auto socket = Start();
  sessions_ended_ = true;
  const Answer answer = Attach(*socket);
  EXPECT_EQ(answer.status(), 1u);
  EXPECT_TRUE(answer.fds.empty());
  EXPECT_EQ(socket->stats().attached, 0u);
  EXPECT_EQ(socket->stats().refused, 1u);
}

TEST_F(MemorySocketTest, AGoodTokenGetsADescriptorForEachShard) {
  const auto socket = Start();
  const Answer answer = Attach(*socket);
  EXPECT_EQ(answer.message.substr(0, 4), "PNDO");
  EXPECT_EQ(answer.Word(4), 1u);
  EXPECT_EQ(answer.status(), 0u);
  ASSERT_EQ(answer.count(), kShards);
  ASSERT_EQ(answer.fds.size(), kShards);
  EXPECT_EQ(answer.message.size(), 16 + 8 * kShards);
  for (uint32_t i = 0; i < kShards; ++i) {
    EXPECT_EQ(answer.SizeOfShard(i), pool_->shards()[i].size_bytes);
  }
  EXPECT_THAT(attached(), ElementsAre(Pair(kSession, getpid())));
  EXPECT_EQ(socket->stats().attached, 1u);
}

TEST_F(MemorySocketTest, DescriptorsComeInTheOrderOfTheShards) {
  for (uint32_t i = 0; i < kShards; ++i) {
    const UniqueFd fd = pool_->ExportShard(i).value();
    ASSERT_EQ(pwrite(fd.get(), &i, sizeof(i), 0),
              static_cast<ssize_t>(sizeof(i)));
  }
  const auto socket = Start();
  const Answer answer = Attach(*socket);
  ASSERT_EQ(answer.fds.size(), kShards);
  for (uint32_t i = 0; i < kShards; ++i) {
    uint32_t mark = kShards;
    ASSERT_EQ(pread(answer.fds[i].get(), &mark, sizeof(mark), 0),
              static_cast<ssize_t>(sizeof(mark)));
    EXPECT_EQ(mark, i);
  }
}

TEST_F(MemorySocketTest, AnotherProcessAttachesWritesAndIsNamed) {
  const auto socket = Start();
  const std::string token =
      Bytes(socket->IssueToken({kSession}, kAnybody).value());
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const UniqueFd peer = Connect(config_.socket.path);
    Write(peer, token);
    const Answer answer = Receive(peer);
    const bool ok = answer.fds.size() == kShards &&
                    pwrite(answer.fds[0].get(), "child", 5, 0) == 5;
    _exit(ok ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  char bytes[5];
  ASSERT_EQ(pread(pool_->ExportShard(0).value().get(), bytes, 5, 0), 5);
  EXPECT_EQ(std::string(bytes, 5), "child");
  EXPECT_THAT(attached(), ElementsAre(Pair(kSession, child)));
}

TEST_F(MemorySocketTest, ATokenInPiecesIsAGoodToken) {
  const auto socket = Start();
  const std::string token =
      Bytes(socket->IssueToken({kSession}, kAnybody).value());
  const UniqueFd peer = Connect(socket->path());
  for (char byte : token) Write(peer, std::string(1, byte));
  EXPECT_EQ(Receive(peer).fds.size(), kShards);
}

void ExpectRefused(const Answer& answer) {
  EXPECT_EQ(answer.message.size(), 16u);
  EXPECT_EQ(answer.status(),
            static_cast<uint32_t>(MemorySocketStatus::kBadToken));
  EXPECT_EQ(answer.count(), 0u);
  EXPECT_TRUE(answer.fds.empty());
}

TEST_F(MemorySocketTest, AUsedTokenIsRefused) {
  const auto socket = Start();
  const std::string token =
      Bytes(socket->IssueToken({kSession}, kAnybody).value());
  for (int i = 0; i < 2; ++i) {
    const UniqueFd peer = Connect(socket->path());
    Write(peer, token);
    const Answer answer = Receive(peer);
    if (i == 1) {
      ExpectRefused(answer);
      EXPECT_TRUE(Receive(peer).message.empty()) << "still connected";
    }
  }
  EXPECT_EQ(socket->stats().attached, 1u);
  EXPECT_EQ(socket->stats().refused, 1u);
  EXPECT_EQ(attached().size(), 1u);
}

TEST_F(MemorySocketTest, AnExpiredTokenIsRefused) {
  config_.token_ttl = absl::ZeroDuration();
  const auto socket = Start();
  ExpectRefused(Attach(*socket));
  EXPECT_TRUE(attached().empty());
}

TEST_F(MemorySocketTest, GarbageIsRefused) {
  const auto socket = Start();
  const UniqueFd peer = Connect(socket->path());
  Write(peer, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ExpectRefused(Receive(peer));
  EXPECT_EQ(socket->stats().refused, 1u);
}

TEST_F(MemorySocketTest, TokensDiffer) {
  const auto socket = Start();
  EXPECT_NE(socket->IssueToken({kSession}, kAnybody).value(),
            socket->IssueToken({kSession}, kAnybody).value());
}

TEST_F(MemorySocketTest, TokensOfASessionAreBoundedWhateverOthersHave) {
  config_.max_tokens_per_session = 2;
  const auto socket = Start();
  for (uint64_t session = 1; session <= 2'000; ++session) {
    ASSERT_TRUE(socket->IssueToken({SessionId(session)}, kAnybody).ok());
    ASSERT_TRUE(socket->IssueToken({SessionId(session)}, kAnybody).ok());
  }
  const absl::Status status =
      socket->IssueToken({SessionId(7)}, kAnybody).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(),
            "the session has 2 attach tokens that it has not used; "
            "max-attach-tokens-per-session is 2");
  EXPECT_EQ(Attach(*socket, SessionId(2'001)).fds.size(), kShards);
}

TEST_F(MemorySocketTest, ATokenOfASessionThatIsForgottenIsRefused) {
  config_.max_tokens_per_session = 1;
  const auto socket = Start();
  const std::string token =
      Bytes(socket->IssueToken({kSession}, kAnybody).value());
  socket->ForgetTokens(kSession);
  EXPECT_TRUE(socket->IssueToken({kSession}, kAnybody).ok());
  const UniqueFd peer = Connect(socket->path());
  Write(peer, token);
  EXPECT_EQ(Receive(peer).status(), 1u);
}

TEST_F(MemorySocketTest, ExpiredTokensDoNotCount) {
  config_.max_tokens_per_session = 1;
  config_.token_ttl = absl::ZeroDuration();
  const auto socket = Start();
  EXPECT_TRUE(socket->IssueToken({kSession}, kAnybody).ok());
  EXPECT_TRUE(socket->IssueToken({kSession}, kAnybody).ok());
}

TEST_F(MemorySocketTest, SilentPeersDelayNobody) {
  const auto socket = Start();
  const UniqueFd silent = Connect(socket->path());
  const UniqueFd halfway = Connect(socket->path());
  Write(halfway, "short");
  EXPECT_EQ(Attach(*socket).fds.size(), kShards);
}

TEST_F(MemorySocketTest, ASilentPeerIsDroppedAfterTheDeadline) {
  config_.peer_deadline = absl::Milliseconds(10);
  const auto socket = Start();
  const UniqueFd silent = Connect(socket->path());
  EXPECT_TRUE(Receive(silent).message.empty());
  EXPECT_EQ(socket->stats().dropped, 1u);
}

TEST_F(MemorySocketTest, APeerThatStopsHalfwayIsDropped) {
  const auto socket = Start();
  const UniqueFd peer = Connect(socket->path());
  Write(peer, "short");
  shutdown(peer.get(), SHUT_WR);
  EXPECT_TRUE(Receive(peer).message.empty());
  EXPECT_EQ(socket->stats().dropped, 1u);
}

TEST_F(MemorySocketTest, TheOldestSilentPeerMakesRoomWhenThereAreTooMany) {
  config_.max_peers = 2;
  const auto socket = Start();
  // Any peer may redeem this token, so the socket cannot tell which of its
  // peers is going to send it.
  ASSERT_TRUE(socket->IssueToken({kSession}, kAnybody).ok());
  const UniqueFd oldest = Connect(socket->path());
  const UniqueFd second = Connect(socket->path());
  const UniqueFd third = Connect(socket->path());
  const UniqueFd fourth = Connect(socket->path());
  EXPECT_TRUE(Receive(oldest).message.empty());
  EXPECT_EQ(Attach(*socket).fds.size(), kShards);
}

// A process that connects over and over and sends nothing. It takes places
// faster than they become free.
class Flood {
 public:
  explicit Flood(const std::string& path) : pid_(fork()) {
    if (pid_ != 0) return;
    std::deque<UniqueFd> held;
    while (true) {
      held.push_back(Connect(path));
      if (held.size() > 500) held.pop_front();
    }
  }
  ~Flood() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Flood(const Flood&) = delete;
  Flood& operator=(const Flood&) = delete;

 private:
  const pid_t pid_;
};

TEST_F(MemorySocketTest, AFloodOfPeersWithoutTokensKeepsNobodyOut) {
  const auto socket = Start();
  const Flood first(socket->path()), second(socket->path());
  while (socket->stats().dropped < 1'000) sched_yield();
  const UnixPeer self{.uid = geteuid(), .pid = getpid()};
  for (int i = 0; i < 15; ++i) {
    const std::string token =
        Bytes(socket->IssueToken({kSession}, self).value());
    const UniqueFd peer = Connect(socket->path());
    Write(peer, token);
    EXPECT_EQ(Receive(peer).fds.size(), kShards) << i;
  }
}

TEST_F(MemorySocketTest, ManyAttachesLeakNoDescriptor) {
  const auto open_fds = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                         std::filesystem::directory_iterator());
  };
  auto socket = Start();
  Attach(*socket);
  socket.reset();
  const auto before = open_fds();
  socket = Start();
  for (int i = 0; i < 200; ++i) Attach(*socket);
  socket.reset();
  EXPECT_EQ(open_fds(), before);
}

TEST_F(MemorySocketTest, APeerThatCameWhenNoDescriptorWasLeftIsServedLater) {
  const auto socket = Start();
  const auto new_token = [&] {
    return Bytes(socket->IssueToken({kSession}, kAnybody).value());
  };
  {
    // After the first peer is served, the socket's thread surely runs. A thread
    // takes a descriptor when it starts if a sanitizer inspects the thread's
    // object.
    const UniqueFd first = Connect(socket->path());
    Write(first, new_token());
    EXPECT_EQ(Receive(first).fds.size(), kShards);
    EXPECT_TRUE(Receive(first).message.empty()) << "still connected";
  }
  const std::string token = new_token();
  // The limit below leaves one more descriptor, which the client takes.
  const int last = UniqueFd(dup(0)).get();
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none_left = {static_cast<rlim_t>(last + 1), limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none_left), 0);
  const UniqueFd peer = Connect(socket->path());
  Write(peer, token);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(Receive(peer).fds.size(), kShards);
}

}  // namespace
}  // namespace pando
