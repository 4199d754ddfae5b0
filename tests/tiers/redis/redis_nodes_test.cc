#include "tiers/redis/redis_nodes.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "os/monotonic_clock.h"
#include "tests/tiers/redis/scripted_server.h"

namespace pando {
namespace {

absl::Time Late() { return MonotonicNow() + absl::Minutes(2); }

class RedisNodesTest : public testing::Test {
 protected:
  std::unique_ptr<RedisConnection> Take() {
    auto connection = nodes_.Take(server_.address(), Late());
    EXPECT_TRUE(connection.ok()) << connection.status();
    return *std::move(connection);
  }
  void GiveBack(std::unique_ptr<RedisConnection> connection) {
    nodes_.GiveBack(server_.address(), std::move(connection));
  }
  // Returns how many connections there were. The server answers a connection
  // only after it has accepted all earlier ones, so all are counted.
  size_t connections() {
    std::unique_ptr<RedisConnection> last = Take();
    std::vector<iovec> parts;
    const RespRequest ping({"PING"});
    ping.AppendTo(parts);
    EXPECT_TRUE(last->Send(std::move(parts), Late()).ok());
    EXPECT_TRUE(last->replies().Read(RespReader::kMaxShortReply, Late()).ok());
    GiveBack(std::move(last));
    return server_.connections();
  }

  ScriptedServer server_{[](const std::string&) { return "+OK\r\n"; }};
  RedisNodes nodes_{RedisLogin()};
};

TEST_F(RedisNodesTest, AConnectionThatIsGivenBackIsTakenAgain) {
  GiveBack(Take());
  GiveBack(Take());
  EXPECT_EQ(connections(), 1u);
}

TEST_F(RedisNodesTest, ThereAreAsManyAsAreTakenAtOnce) {
  auto one = Take();
  auto other = Take();
  GiveBack(std::move(one));
  GiveBack(std::move(other));
  one = Take();
  other = Take();
  GiveBack(std::move(other));
  EXPECT_EQ(connections(), 2u);
}

TEST_F(RedisNodesTest, OneThatTheServerHasClosedIsNotTaken) {
  auto one = Take();
  RedisConnection* const closed = one.get();
  GiveBack(std::move(one));
  EXPECT_EQ(connections(), 1u);
  server_.CloseAll();
  // The client notices a moment later that the server has closed the
  // connection.
  while (closed->IsQuiet()) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_EQ(connections(), 2u);
}

TEST_F(RedisNodesTest, AfterAFailureThoseThatNoOneUsesAreClosed) {
  auto used = Take();
  GiveBack(Take());
  EXPECT_EQ(connections(), 2u);
  nodes_.Forget(server_.address());
  EXPECT_EQ(connections(), 3u);
  GiveBack(std::move(used));
  EXPECT_EQ(connections(), 3u);
}

TEST_F(RedisNodesTest, MoreThanNodesOfAClusterNeedAreNotKept) {
  constexpr size_t kMost = 256;
  std::vector<std::unique_ptr<RedisConnection>> taken;
  for (size_t i = 0; i <= kMost; ++i) taken.push_back(Take());
  for (auto& connection : taken) GiveBack(std::move(connection));
  // One connection too many was given back: it was kept, and all others were
  // closed.
  const auto kept = Take();
  const auto added = Take();
  EXPECT_EQ(connections(), kMost + 3);
}

}  // namespace
}  // namespace pando
