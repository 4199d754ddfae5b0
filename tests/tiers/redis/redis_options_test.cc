#include "tiers/redis/redis_options.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace pando {
namespace {

absl::StatusOr<RedisStore::Config> Read(const std::vector<std::string>& texts) {
  std::vector<StoreUri> uris;
  for (const std::string& text : texts) {
    const absl::StatusOr<StoreUri> uri = StoreUri::Parse(text);
    EXPECT_TRUE(uri.ok()) << uri.status();
    uris.push_back(*uri);
  }
  return ReadRedisOptions(uris);
}

TEST(RedisOptionsTest, TheFirstAddressHasTheOptionsOfAll) {
  const absl::StatusOr<RedisStore::Config> config =
      Read({"rediss://a:1?user=pando&password-file=/p=1&ca=/ca&certificate=/c&"
            "key=/k&ttl=90m",
            "rediss://b"});
  ASSERT_TRUE(config.ok()) << config.status();
  ASSERT_EQ(config->seeds.size(), 2u);
  EXPECT_EQ(config->seeds[0].url(), "rediss://a:1");
  EXPECT_EQ(config->seeds[1].url(), "rediss://b:6379");
  EXPECT_EQ(config->user, "pando");
  EXPECT_EQ(config->password_file, "/p=1");
  EXPECT_EQ(config->tls.ca, "/ca");
  EXPECT_EQ(config->tls.certificate, "/c");
  EXPECT_EQ(config->tls.key, "/k");
  EXPECT_EQ(config->ttl, absl::Minutes(90));
}

TEST(RedisOptionsTest, AnAddressMayDoWithoutOptions) {
  const absl::StatusOr<RedisStore::Config> config =
      Read({"unix:///run/redis.sock"});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->seeds.front().url(), "unix:///run/redis.sock");
  EXPECT_EQ(config->user, "");
  EXPECT_EQ(config->ttl, absl::Hours(24));
}

TEST(RedisOptionsTest, AnUnknownOptionIsNotRepeated) {
  const absl::Status status = Read({"redis://a?secret=secret"}).status();
  EXPECT_EQ(status.message(),
            "an option that Redis does not know; must be one "
            "of user, password-file, ca, certificate, key, ttl");
}

}  // namespace
}  // namespace pando
