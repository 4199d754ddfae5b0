// Tests that a client asks for a token and the memory again when pandod dies
// between the two.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <filesystem>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "base/unique_fd.h"
#include "pando/client.h"
#include "tests/clients/pandod_fixture.h"

namespace pando {
namespace {

// Takes the place of the memory socket until one connection arrives, and ends
// that connection as if pandod had died.
class DyingMemorySocket {
 public:
  // `answer` is what the peer gets before the connection ends.
  DyingMemorySocket(std::filesystem::path path, std::string answer)
      : path_(std::move(path)), answer_(std::move(answer)) {
    std::filesystem::rename(path_, Real());
    listener_ = UniqueFd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    path_.string().copy(address.sun_path, sizeof(address.sun_path) - 1);
    EXPECT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address),
                   sizeof(address)),
              0);
    EXPECT_EQ(listen(listener_.get(), 1), 0);
    thread_ = std::thread([this] { ServeOne(); });
  }
  ~DyingMemorySocket() { thread_.join(); }

 private:
  std::filesystem::path Real() const { return path_.string() + ".real"; }

  void ServeOne() {
    const UniqueFd peer(accept(listener_.get(), nullptr, nullptr));
    std::filesystem::rename(Real(), path_);
    char token[16];
    if (!answer_.empty()) {
      EXPECT_EQ(recv(peer.get(), token, sizeof(token), MSG_WAITALL), 16);
      send(peer.get(), answer_.data(), answer_.size(), MSG_NOSIGNAL);
    }
    // If there are unread bytes, the close is a reset for the peer.
  }

  const std::filesystem::path path_;
  const std::string answer_;
  UniqueFd listener_;
  std::thread thread_;
};

// The answer of the next pandod, which does not know the token.
const std::string kRefusal("PNDO\1\0\0\0\1\0\0\0\0\0\0\0", 16);

class AttachRepeatTest : public PandodTest,
                         public testing::WithParamInterface<std::string> {
 protected:
  std::filesystem::path memory_socket() const {
    return folder_ / "memory.sock";
  }
};

TEST_P(AttachRepeatTest, APoolIsAttachedAllTheSame) {
  const auto client = Connect();
  const DyingMemorySocket dying(memory_socket(), GetParam());
  const auto pool = client->AttachPool();
  EXPECT_TRUE(pool.ok()) << pool.status();
}

TEST_P(AttachRepeatTest, ASessionIsLinkedAllTheSame) {
  const auto client = Connect();
  const DyingMemorySocket dying(memory_socket(), GetParam());
  const absl::Status linked = client->LinkSession(client->session_id());
  EXPECT_TRUE(linked.ok()) << linked;
}

TEST_P(AttachRepeatTest, ALaneIsOpenedAllTheSame) {
  const DyingMemorySocket dying(memory_socket(), GetParam());
  const auto client = Connect();
  EXPECT_TRUE(client->why_no_lane().ok()) << client->why_no_lane();
}

INSTANTIATE_TEST_SUITE_P(Deaths, AttachRepeatTest,
                         testing::Values("", "PN", kRefusal),
                         [](const auto& death) {
                           return death.param.empty()       ? "Reset"
                                  : death.param == kRefusal ? "Refusal"
                                                            : "Cut";
                         });

TEST_F(PandodTest, ASessionOfAnEarlierPandodIsLostWhenItAttaches) {
  const auto client = Connect();
  const uint64_t session = client->session_id();
  pandod_->Kill();
  StartPandod();
  ASSERT_TRUE(Eventually([&] { return client->session_id() != session; }));
  EXPECT_THAT(client->LinkSession(session), FailsWith("SESSION_LOST"));
}

}  // namespace
}  // namespace pando
