#include "service/start_kv_events.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/check.h"
#include "events/routers/kv_event_stream.h"

namespace pando {
namespace {

// Returns the address with a port higher by `offset`; an empty address stays
// empty.
std::string WithPort(const std::string& address, size_t offset) {
  if (address.empty()) return "";
  const size_t colon = address.rfind(':') + 1;
  uint32_t port = 0;
  CHECK(absl::SimpleAtoi(address.substr(colon), &port));
  return absl::StrCat(address.substr(0, colon), port + offset);
}

bool Includes(const Options& options, const std::string& what) {
  return std::ranges::find(options.kv_events_include, what) !=
         options.kv_events_include.end();
}

// Converts the options. Without a list of workers there is one, whose name is
// empty.
KvEventStream::Config ConfigOf(const Options& options) {
  KvEventStream::Config config;
  config.form =
      options.kv_events_form == "map" ? KvEventForm::kMap : KvEventForm::kArray;
  config.blocks = {
      .pages_per_block = options.kv_events_block_tokens / options.page_tokens,
      .salted = Includes(options, "salted"),
      .bigram = Includes(options, "bigram")};
  config.path =
      std::filesystem::path(options.socket).replace_extension(".kv-events");
  std::vector<std::string> names = options.kv_events_workers;
  if (names.empty()) names.emplace_back();
  for (size_t i = 0; i < names.size(); ++i) {
    config.workers.push_back(
        {.endpoint = WithPort(options.kv_events, i),
         .replay_endpoint = WithPort(options.kv_events_replay, i),
         .topic = absl::StrReplaceAll(
             options.kv_events_topic,
             {{"{worker}", names[i]}, {"{model}", options.model}})});
  }
  return config;
}

}  // namespace

absl::StatusOr<std::unique_ptr<KvEvents>> StartKvEvents(
    const Options& options) {
  return KvEventStream::Start(ConfigOf(options));
}

}  // namespace pando
