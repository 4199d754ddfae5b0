#include "tiers/redis/redis_address.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace pando {
namespace {

absl::Status BadUrl(absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(
      "an address ", why,
      "; must be redis://HOST:PORT, rediss://HOST:PORT or unix:///PATH"));
}

}  // namespace

absl::StatusOr<RedisAddress> RedisAddress::Parse(const std::string& url) {
  RedisAddress address;
  absl::string_view rest = url;
  if (absl::ConsumePrefix(&rest, "unix://")) {
    if (!absl::StartsWith(rest, "/"))
      return BadUrl("whose path is not absolute");
    address.host = std::string(rest);
    return address;
  }
  address.has_tls = absl::ConsumePrefix(&rest, "rediss://");
  if (!address.has_tls && !absl::ConsumePrefix(&rest, "redis://")) {
    return BadUrl("of an unknown kind");
  }
  if (absl::StrContains(rest, '@')) {
    return BadUrl(
        "with a user or password, which its options user and "
        "password-file say");
  }
  if (rest.find_first_of("/?#") != rest.npos) {
    return BadUrl("with something after the port");
  }
  // An address of IPv6 stands in brackets.
  size_t port = rest.find(':');
  if (absl::StartsWith(rest, "[")) port = rest.find(']') + 1;
  const absl::string_view host = rest.substr(0, port);
  address.host =
      std::string(absl::StripSuffix(absl::StripPrefix(host, "["), "]"));
  if (address.host.empty()) return BadUrl("without a host");
  rest.remove_prefix(host.size());
  uint32_t number = kDefaultPort;
  if (!rest.empty() &&
      (!absl::ConsumePrefix(&rest, ":") || !absl::SimpleAtoi(rest, &number) ||
       number == 0 || number > UINT16_MAX)) {
    return BadUrl("whose port is not one from 1 to 65535");
  }
  address.port = static_cast<uint16_t>(number);
  return address;
}

std::string RedisAddress::url() const {
  if (absl::StartsWith(host, "/")) return absl::StrCat("unix://", host);
  const bool is_ipv6 = absl::StrContains(host, ':');
  return absl::StrCat(has_tls ? "rediss://" : "redis://", is_ipv6 ? "[" : "",
                      host, is_ipv6 ? "]" : "", ":", port);
}

}  // namespace pando
