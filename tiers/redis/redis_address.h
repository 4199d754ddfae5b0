#ifndef PANDO_TIERS_REDIS_REDIS_ADDRESS_H_
#define PANDO_TIERS_REDIS_REDIS_ADDRESS_H_

#include <compare>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace pando {

// Where a server listens: redis://HOST:PORT, rediss://HOST:PORT (with TLS) or
// unix:///PATH. Plain data.
struct RedisAddress {
  static constexpr uint16_t kDefaultPort = 6379;

  // An error does not repeat `url`, which may have a password.
  static absl::StatusOr<RedisAddress> Parse(const std::string& url);
  // As Parse reads it.
  std::string url() const;

  auto operator<=>(const RedisAddress&) const = default;

  std::string host;  // a path begins with a slash
  uint16_t port = 0;
  bool has_tls = false;
};

}  // namespace pando

#endif  // PANDO_TIERS_REDIS_REDIS_ADDRESS_H_
