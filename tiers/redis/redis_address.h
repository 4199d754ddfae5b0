#ifndef PANDO_TIERS_REDIS_REDIS_ADDRESS_H_
#define PANDO_TIERS_REDIS_REDIS_ADDRESS_H_

#include <compare>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace pando {

// The address of a server: redis://HOST:PORT, rediss://HOST:PORT (with TLS) or
// unix:///PATH. Plain data.
struct RedisAddress {
  static constexpr uint16_t kDefaultPort = 6379;

  // Parses an address. An error does not repeat `url`, because it may contain a
  // password.
  static absl::StatusOr<RedisAddress> Parse(const std::string& url);
  // Returns the address in the form that Parse reads.
  std::string url() const;

  auto operator<=>(const RedisAddress&) const = default;

  std::string host;  // or the path of a Unix socket, from its slash on
  uint16_t port = 0;
  bool has_tls = false;
};

}  // namespace pando

#endif  // PANDO_TIERS_REDIS_REDIS_ADDRESS_H_
