#include "tiers/redis/redis_slots.h"

#include <string>

#include "gtest/gtest.h"
#include "tests/tiers/redis/byte_stream_of.h"

namespace pando {
namespace {

const RedisAddress kAsked = {.host = "asked", .port = 1, .has_tls = true};

absl::StatusOr<RedisSlots> Parse(const std::string& text) {
  ByteStreamOf stream(text, 7);
  const absl::StatusOr<RespReply> reply =
      RespReader(&stream).Read(RespReader::kMaxReply, absl::InfiniteFuture());
  return RedisSlots::Parse(*reply, kAsked);
}

TEST(RedisSlotsTest, KeysHaveTheSlotsOfTheSpecification) {
  EXPECT_EQ(RedisSlots::SlotOf("123456789"), 0x31c3u);
  EXPECT_EQ(RedisSlots::SlotOf("foo"), 12182u);
  EXPECT_EQ(RedisSlots::SlotOf(""), 0u);
}

TEST(RedisSlotsTest, EachSlotHasThePrimaryOfItsRange) {
  const absl::StatusOr<RedisSlots> slots = Parse(
      "*2\r\n"
      "*4\r\n:0\r\n:12181\r\n"
      "*3\r\n$1\r\na\r\n:7000\r\n$2\r\nid\r\n"
      "*3\r\n$1\r\nr\r\n:7001\r\n$2\r\nid\r\n"
      "*3\r\n:12182\r\n:12182\r\n*3\r\n$0\r\n\r\n:7002\r\n$2\r\nid\r\n");
  ASSERT_TRUE(slots.ok()) << slots.status();
  EXPECT_EQ(slots->nodes().size(), 2u);
  EXPECT_EQ(slots->NodeOf("")->url(), "rediss://a:7000");
  EXPECT_EQ(slots->NodeOf("foo")->url(), "rediss://asked:7002");
  EXPECT_EQ(slots->NodeOf("123456789"), nullptr);
}

TEST(RedisSlotsTest, SlotsThatMakeNoSenseAreErrors) {
  for (const std::string text :
       {"+OK\r\n", "*0\r\n", "*1\r\n*0\r\n", "*1\r\n*3\r\n:0\r\n:1\r\n:2\r\n",
        "*1\r\n*3\r\n:-1\r\n:1\r\n*2\r\n$1\r\na\r\n:1\r\n",
        "*1\r\n*3\r\n:2\r\n:1\r\n*2\r\n$1\r\na\r\n:1\r\n",
        "*1\r\n*3\r\n:0\r\n:16384\r\n*2\r\n$1\r\na\r\n:1\r\n",
        "*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n$1\r\na\r\n:65536\r\n",
        "*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n$7\r\n/a.sock\r\n:1\r\n",
        "*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n$2\r\n/a\r\n:1\r\n"}) {
    EXPECT_FALSE(Parse(text).ok()) << text;
  }
}

TEST(RedisSlotsTest, RedirectionsAreRead) {
  const auto moved = RedisRedirection::Parse("MOVED 5 ::1:7000", kAsked);
  ASSERT_TRUE(moved.has_value());
  EXPECT_EQ(moved->node.url(), "rediss://[::1]:7000");
  EXPECT_FALSE(moved->is_asking);
  const auto ask = RedisRedirection::Parse("ASK 5 :7000", kAsked);
  ASSERT_TRUE(ask.has_value());
  EXPECT_EQ(ask->node.url(), "rediss://asked:7000");
  EXPECT_TRUE(ask->is_asking);
  for (const char* const text :
       {"", "ERR no", "MOVED", "MOVED 5", "MOVED 5 a", "MOVED 5 a:0",
        "MOVED 5 a:65536", "MOVED 5 a:x", "moved 5 a:1", "MOVED 5 /a:1"}) {
    EXPECT_FALSE(RedisRedirection::Parse(text, kAsked).has_value()) << text;
  }
}

}  // namespace
}  // namespace pando
