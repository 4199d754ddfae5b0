#include "tiers/redis/redis_options.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"

namespace pando {
namespace {

constexpr absl::Duration kMinTtl = absl::Hours(1);
constexpr absl::Duration kMaxTtl = absl::Hours(8760);

using Read = absl::Status (*)(const std::string& text,
                              RedisStore::Config& config);

template <auto kField>
absl::Status ReadText(const std::string& text, RedisStore::Config& config) {
  config.*kField = text;
  return absl::OkStatus();
}

template <auto kField>
absl::Status ReadTlsFile(const std::string& text, RedisStore::Config& config) {
  config.tls.*kField = text;
  return absl::OkStatus();
}

absl::Status ReadTtl(const std::string& text, RedisStore::Config& config) {
  if (absl::ParseDuration(text, &config.ttl) && config.ttl >= kMinTtl &&
      config.ttl <= kMaxTtl) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrFormat(
      "a ttl of '%s'; must be a duration with unit from %s to %s", text,
      absl::FormatDuration(kMinTtl), absl::FormatDuration(kMaxTtl)));
}

constexpr std::pair<absl::string_view, Read> kOptions[] = {
    {"user", ReadText<&RedisStore::Config::user>},
    {"password-file", ReadText<&RedisStore::Config::password_file>},
    {"ca", ReadTlsFile<&RedisTlsFiles::ca>},
    {"certificate", ReadTlsFile<&RedisTlsFiles::certificate>},
    {"key", ReadTlsFile<&RedisTlsFiles::key>},
    {"ttl", ReadTtl},
};

absl::Status ReadOption(const std::string& name, const std::string& text,
                        RedisStore::Config& config) {
  const auto known = std::ranges::find(
      kOptions, name, &std::pair<absl::string_view, Read>::first);
  if (known != std::end(kOptions)) return known->second(text, config);
  return absl::InvalidArgumentError(absl::StrCat(
      "an option that Redis does not know; must be one of ",
      absl::StrJoin(kOptions, ", ", [](std::string* names, const auto& option) {
        absl::StrAppend(names, option.first);
      })));
}

absl::Status CheckTogether(const RedisStore::Config& config) {
  const RedisTlsFiles& tls = config.tls;
  if (!config.user.empty() && config.password_file.empty()) {
    return absl::InvalidArgumentError("a user, which needs password-file");
  }
  if (tls.certificate.empty() != tls.key.empty()) {
    return absl::InvalidArgumentError(
        "certificate or key alone; must be given both or not at all");
  }
  const bool has_tls = config.seeds.front().has_tls;
  for (const RedisAddress& seed : config.seeds) {
    if (seed.has_tls == has_tls) continue;
    return absl::InvalidArgumentError(
        "addresses with and without TLS; must be of one kind");
  }
  if (!has_tls && !(tls.ca.empty() && tls.certificate.empty())) {
    return absl::InvalidArgumentError(
        "ca or certificate, which need an address rediss://");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RedisStore::Config> ReadRedisOptions(
    std::span<const StoreUri> uris) {
  RedisStore::Config config;
  for (const StoreUri& uri : uris) {
    ASSIGN_OR_RETURN(
        config.seeds.emplace_back(),
        RedisAddress::Parse(absl::StrCat(uri.scheme, "://", uri.place)));
    if (config.seeds.size() > 1 && !uri.options.empty()) {
      return absl::InvalidArgumentError(
          "options after another address than the first");
    }
  }
  for (const auto& [name, text] : uris.front().options) {
    RETURN_IF_ERROR(ReadOption(name, text, config));
  }
  RETURN_IF_ERROR(CheckTogether(config));
  return config;
}

}  // namespace pando
