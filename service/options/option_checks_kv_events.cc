#include "service/options/option_checks_kv_events.h"

#include <regex>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"

namespace pando {
namespace {

constexpr size_t kMaxEndpoint = 300;
constexpr size_t kMaxPort = 65'535;
constexpr std::string_view kEndpointPrefix = "tcp://";

// Checks an endpoint. Each worker gets a port of its own, from the given one
// on.
absl::Status CheckEndpoint(const std::string& name, const std::string& endpoint,
                           const Options& options) {
  if (endpoint.empty()) return absl::OkStatus();
  static const std::regex form(
      "tcp://(\\*|\\[[0-9a-fA-F:.]+\\]|[^:\\s]+):([1-9]\\d{0,4})");
  std::smatch parts;
  // std::regex takes a stack frame for each character that it matches.
  if (endpoint.size() > kMaxEndpoint ||
      !std::regex_match(endpoint, parts, form) ||
      std::stoul(parts[2]) > kMaxPort) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s is '%s'; must be %shost:port with a port from 1 to %u, or empty",
        name, endpoint.substr(0, kMaxEndpoint), kEndpointPrefix, kMaxPort));
  }
  const size_t workers = options.kv_events_workers.size();
  if (workers == 0 || std::stoul(parts[2]) + workers - 1 <= kMaxPort) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrFormat(
      "%s is '%s', and kv-events-workers are %u, each with a port of its own "
      "from there on; the last port must be at most %u",
      name, endpoint, workers, kMaxPort));
}

// Refuses options that need kv-events if that is not given.
absl::Status CheckAlone(const Options& options) {
  const std::string_view given =
      !options.kv_events_replay.empty()    ? "kv-events-replay"
      : !options.kv_events_topic.empty()   ? "kv-events-topic"
      : !options.kv_events_workers.empty() ? "kv-events-workers"
      : !options.kv_events_include.empty() ? "kv-events-include"
      : options.kv_events_block_tokens > 0 ? "kv-events-block-tokens"
      : options.kv_events_tiers            ? "kv-events-tiers"
                                           : "";
  if (given.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("%s is given, which needs kv-events", given));
}

absl::Status CheckTopic(const Options& options) {
  if (!options.kv_events_workers.empty() ||
      !absl::StrContains(options.kv_events_topic, "{worker}")) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrFormat("kv-events-topic is '%s'; {worker} needs "
                      "kv-events-workers",
                      options.kv_events_topic));
}

absl::Status CheckIncluded(const Options& options) {
  for (const std::string& name : options.kv_events_include) {
    if (name != "salted" && name != "bigram") {
      return absl::InvalidArgumentError(absl::StrFormat(
          "kv-events-include has '%s'; may have salted and bigram", name));
    }
  }
  if (options.kv_events_include.empty() || options.kv_events_form == "map") {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrFormat(
      "kv-events-include is given, which needs kv-events-form map; it is %s",
      options.kv_events_form));
}

// Checks that the tiers can be told. Routers that read only arrays would take a
// tier for the pool (docs/fleet.md).
absl::Status CheckTiersTold(const Options& options) {
  if (!options.kv_events_tiers) return absl::OkStatus();
  if (options.tier_host_bytes == 0 && options.tier_disk.empty()) {
    return absl::InvalidArgumentError(
        "kv-events-tiers is given, which needs tier-host-bytes or tier-disk");
  }
  if (options.kv_events_form == "map") return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "kv-events-tiers is given, which needs kv-events-form map; it is %s",
      options.kv_events_form));
}

absl::Status CompleteBlockTokens(Options& options) {
  uint32_t& tokens = options.kv_events_block_tokens;
  if (tokens == 0) tokens = options.page_tokens;
  if (tokens % options.page_tokens == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("kv-events-block-tokens is %u; must be a multiple of "
                      "page-tokens, which is %u",
                      tokens, options.page_tokens));
}

}  // namespace

absl::Status CompleteKvEvents(Options& options) {
  if (options.kv_events.empty()) return CheckAlone(options);
  RETURN_IF_ERROR(CheckEndpoint("kv-events", options.kv_events, options));
  RETURN_IF_ERROR(
      CheckEndpoint("kv-events-replay", options.kv_events_replay, options));
  RETURN_IF_ERROR(CheckTopic(options));
  RETURN_IF_ERROR(CheckIncluded(options));
  RETURN_IF_ERROR(CheckTiersTold(options));
  return CompleteBlockTokens(options);
}

}  // namespace pando
