#include "tiers/redis/redis_client.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "os/monotonic_clock.h"
#include "tests/tiers/redis/scripted_server.h"

namespace pando {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kNoCluster[] =
    "-ERR This instance has cluster support disabled\r\n";
constexpr char kSlots[] = "CLUSTER SLOTS";

absl::Time Late() { return MonotonicNow() + absl::Minutes(2); }

RedisCommand Get(const std::string& key) {
  return {.key = key, .request = RespRequest({"GET", key})};
}

// Returns the first key from `number` on that has a slot in this half of the
// slots.
std::string KeyOfHalf(int half, int number = 0) {
  while (true) {
    std::string key = absl::StrCat("key", number++);
    if (static_cast<int>(RedisSlots::SlotOf(key) / 8192) == half) return key;
  }
}

// Returns the answer to CLUSTER SLOTS if each of these servers has one half of
// the slots. If a server is null, no node has its half.
std::string Halves(const std::vector<const ScriptedServer*>& servers) {
  std::string ranges;
  int count = 0;
  for (size_t i = 0; i < servers.size(); ++i) {
    if (servers[i] == nullptr) continue;
    const RedisAddress& node = servers[i]->address();
    absl::StrAppend(&ranges, "*3\r\n:", i * 8192, "\r\n:", i * 8192 + 8191,
                    "\r\n*2\r\n$", node.host.size(), "\r\n", node.host,
                    "\r\n:", node.port, "\r\n");
    ++count;
  }
  return absl::StrCat("*", count, "\r\n", ranges);
}

std::string SentTo(const char* how, const ScriptedServer& other) {
  return absl::StrCat("-", how, " 1 127.0.0.1:", other.address().port, "\r\n");
}

// Starts two nodes. A test decides which slots each of them reports, and what
// it answers.
class RedisClientTest : public testing::Test {
 protected:
  ScriptedServer::Answer AnswerOf(size_t node) {
    return [this, node](const std::string& command) {
      return command == kSlots ? slots_[node] : answers_[node](command);
    };
  }
  std::string Run(RedisClient& client, const std::string& key) {
    RedisCommand command = Get(key);
    client.Run({&command, 1}, Late());
    if (!command.reply.ok())
      return std::string(command.reply.status().message());
    return command.reply->text;
  }
  void BothSay(const std::string& slots) { slots_ = {slots, slots}; }
  static size_t Count(const ScriptedServer& server,
                      const std::string& command) {
    const std::vector<std::string> commands = server.commands();
    return static_cast<size_t>(std::ranges::count(commands, command));
  }

  ScriptedServer::Answer answers_[2] = {
      [](const std::string&) { return "+first\r\n"; },
      [](const std::string&) { return "+second\r\n"; },
  };
  // The answer of each node to CLUSTER SLOTS.
  std::vector<std::string> slots_;
  ScriptedServer first_{AnswerOf(0)};
  ScriptedServer second_{AnswerOf(1)};
};

TEST_F(RedisClientTest, AServerWithoutAClusterHasAllKeys) {
  BothSay(kNoCluster);
  RedisClient client({first_.address()}, {});
  EXPECT_EQ(Run(client, KeyOfHalf(0)), "first");
  EXPECT_EQ(Run(client, KeyOfHalf(1)), "first");
  EXPECT_EQ(Count(first_, kSlots), 1u);
  EXPECT_EQ(first_.connections(), 1u);
}

TEST_F(RedisClientTest, EachKeyIsAskedOfTheNodeThatHasItAndAllAtOnce) {
  BothSay(Halves({&first_, &second_}));
  RedisClient client({first_.address()}, {});
  std::vector<RedisCommand> commands;
  for (int i = 0; i < 6; ++i) commands.push_back(Get(KeyOfHalf(i % 2, i * 10)));
  client.Run(commands, Late());
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(commands[i].reply->text, i % 2 == 0 ? "first" : "second");
  }
  EXPECT_THAT(second_.commands(),
              ElementsAre("GET " + commands[1].key, "GET " + commands[3].key,
                          "GET " + commands[5].key));
  EXPECT_THAT(*client.FindNodes(Late()),
              ElementsAre(first_.address(), second_.address()));
}

TEST_F(RedisClientTest, AKeyThatHasMovedIsFollowedAndSlotsAreAskedAgain) {
  BothSay(Halves({&first_, &first_}));
  answers_[0] = [this](const std::string&) { return SentTo("MOVED", second_); };
  RedisClient client({first_.address()}, {});
  EXPECT_EQ(Run(client, KeyOfHalf(1)), "second");
  BothSay(Halves({&first_, &second_}));
  EXPECT_EQ(Run(client, KeyOfHalf(1)), "second");
  EXPECT_EQ(Count(first_, kSlots) + Count(second_, kSlots), 2u);
  EXPECT_EQ(Count(first_, "GET " + KeyOfHalf(1)), 1u);
}

TEST_F(RedisClientTest, AKeyThatIsMovingIsAskedOfTheOtherNodeForThisTime) {
  BothSay(Halves({&first_, &first_}));
  answers_[0] = [this](const std::string&) { return SentTo("ASK", second_); };
  answers_[1] = [](const std::string& command) {
    return command == "ASKING" ? "+OK\r\n" : "+second\r\n";
  };
  RedisClient client({first_.address()}, {});
  const std::string get = "GET " + KeyOfHalf(0);
  EXPECT_EQ(Run(client, KeyOfHalf(0)), "second");
  EXPECT_EQ(Run(client, KeyOfHalf(0)), "second");
  EXPECT_THAT(second_.commands(), ElementsAre("ASKING", get, "ASKING", get));
  EXPECT_EQ(Count(first_, kSlots), 1u);
}

TEST_F(RedisClientTest, NodesThatSendAKeyToEachOtherAreLeftAfterAWhile) {
  BothSay(Halves({&first_, &second_}));
  answers_[0] = [this](const std::string&) { return SentTo("MOVED", second_); };
  answers_[1] = [this](const std::string&) { return SentTo("MOVED", first_); };
  RedisClient client({first_.address()}, {});
  const std::string get = "GET " + KeyOfHalf(0);
  EXPECT_THAT(Run(client, KeyOfHalf(0)), HasSubstr("MOVED"));
  EXPECT_EQ(Count(first_, get) + Count(second_, get), 4u);
}

TEST_F(RedisClientTest, AKeyThatNoNodeHasIsAnErrorAndSlotsAreAskedAgain) {
  BothSay(Halves({&first_, nullptr}));
  RedisClient client({first_.address()}, {});
  EXPECT_EQ(Run(client, KeyOfHalf(1)), "no node has this key's slot");
  BothSay(Halves({&first_, &second_}));
  EXPECT_EQ(Run(client, KeyOfHalf(1)), "second");
}

TEST_F(RedisClientTest, ASeedThatDoesNotAnswerIsAskedLastTheNextTime) {
  slots_ = {ScriptedServer::kClose, kNoCluster};
  RedisClient client({first_.address(), second_.address()}, {});
  EXPECT_EQ(Run(client, "key"), "second");
  EXPECT_THAT(*client.FindNodes(Late()), ElementsAre(second_.address()));
  EXPECT_EQ(Count(first_, kSlots), 1u);
  EXPECT_EQ(Count(second_, kSlots), 2u);
}

TEST_F(RedisClientTest, WhatFollowsABreakFailsAndTheNextCallConnectsAnew) {
  BothSay(kNoCluster);
  answers_[0] = [](const std::string& command) {
    return command == "GET b" ? ScriptedServer::kClose : "+first\r\n";
  };
  RedisClient client({first_.address()}, {});
  std::vector<RedisCommand> commands;
  for (const char* key : {"a", "b", "c"}) commands.push_back(Get(key));
  client.Run(commands, Late());
  EXPECT_EQ(commands[0].reply->text, "first");
  EXPECT_TRUE(absl::IsUnavailable(commands[1].reply.status()));
  EXPECT_TRUE(absl::IsUnavailable(commands[2].reply.status()));
  EXPECT_EQ(Run(client, "a"), "first");
  EXPECT_EQ(first_.connections(), 2u);
}

TEST_F(RedisClientTest, AConnectionToAReplicaIsNotUsedAgain) {
  BothSay(kNoCluster);
  answers_[0] = [](const std::string&) {
    return "-READONLY You can't write against a read only replica.\r\n";
  };
  RedisClient client({first_.address()}, {});
  EXPECT_THAT(Run(client, "key"), HasSubstr("READONLY"));
  EXPECT_THAT(Run(client, "key"), HasSubstr("READONLY"));
  EXPECT_EQ(first_.connections(), 2u);
}

TEST_F(RedisClientTest, AServerThatSaysNothingIsLeftAtTheDeadline) {
  BothSay("");
  RedisClient client({first_.address()}, {});
  RedisCommand command = Get("key");
  client.Run({&command, 1}, MonotonicNow() + absl::Milliseconds(20));
  EXPECT_TRUE(absl::IsDeadlineExceeded(command.reply.status()))
      << command.reply.status();
  EXPECT_THAT(second_.commands(), IsEmpty());
}

}  // namespace
}  // namespace pando
