#include "tiers/redis/redis_address.h"

#include <string>

#include "absl/strings/match.h"
#include "gtest/gtest.h"

namespace pando {
namespace {

TEST(RedisAddressTest, AddressesAreReadAndWritten) {
  for (const std::string url :
       {"redis://kv:6380", "rediss://kv.example:1", "redis://[::1]:65535",
        "redis://127.0.0.1:6379", "unix:///run/redis.sock"}) {
    const absl::StatusOr<RedisAddress> address = RedisAddress::Parse(url);
    ASSERT_TRUE(address.ok()) << address.status();
    EXPECT_EQ(address->url(), url);
  }
  EXPECT_EQ(RedisAddress::Parse("redis://kv")->url(), "redis://kv:6379");
  EXPECT_EQ(RedisAddress::Parse("rediss://[::1]")->url(),
            "rediss://[::1]:6379");
}

TEST(RedisAddressTest, WhatIsNoAddressIsRefusedAndNotRepeated) {
  for (const std::string url :
       {"", "kv", "http://kv", "redis://", "redis://:6379",
        "redis://kv:", "redis://kv:0", "redis://kv:65536", "redis://kv:x",
        "redis://kv:1/0", "redis://u:secret@kv", "redis://kv?password=secret",
        "redis://[::1", "redis://[]:1", "unix://run/redis.sock"}) {
    const absl::Status status = RedisAddress::Parse(url).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << url;
    EXPECT_FALSE(absl::StrContains(status.message(), "secret"));
  }
}

}  // namespace
}  // namespace pando
