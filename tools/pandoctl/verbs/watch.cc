// pandoctl watch: what enters and leaves the cache, without its tokens.

#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/pandoctl/figures.h"
#include "tools/pandoctl/verbs.h"

namespace pando::ctl {
namespace {

// The first bytes of a hash, enough to tell blocks apart.
std::string HashText(const std::string& hash) {
  return absl::BytesToHexString(hash.substr(0, 6));
}

std::string StoredText(const v1::BlocksStored& stored) {
  std::string text = absl::StrFormat(
      "stored %s of %d tokens",
      Counted(static_cast<uint64_t>(stored.block_hashes_size()), "block"),
      stored.page_tokens());
  if (stored.has_extra_key()) {
    absl::StrAppend(&text, ", extra_key ", NameText(stored.extra_key()));
  }
  if (stored.has_cache_salt()) absl::StrAppend(&text, ", salted");
  if (stored.bigram()) absl::StrAppend(&text, ", bigram");
  if (!stored.parent_block_hash().empty()) {
    absl::StrAppend(&text, ", after ", HashText(stored.parent_block_hash()));
  }
  if (stored.block_hashes_size() == 0) return text;
  return absl::StrCat(text, ", up to ",
                      HashText(*stored.block_hashes().rbegin()));
}

std::string RemovedText(const v1::BlocksRemoved& removed) {
  std::string text = absl::StrCat(
      "removed ",
      Counted(static_cast<uint64_t>(removed.block_hashes_size()), "block"),
      " for ", ReasonText(removed.reason()));
  if (removed.block_hashes_size() == 0) return text;
  return absl::StrCat(text, ", from ", HashText(removed.block_hashes(0)));
}

std::string EventText(const v1::Event& event) {
  switch (event.event_case()) {
    case v1::Event::kStored:
      return StoredText(event.stored());
    case v1::Event::kRemoved:
      return RemovedText(event.removed());
    case v1::Event::kCleared:
      return "cleared";
    case v1::Event::kLost:
      return absl::StrFormat("lost events %d to %d",
                             event.lost().first_sequence(),
                             event.lost().last_sequence());
    case v1::Event::kSnapshotEnd:
      return "end of the snapshot";
    case v1::Event::EVENT_NOT_SET:
      break;
  }
  return "unknown";
}

Json EventJson(const v1::Event& event) {
  v1::Event shown = event;
  if (shown.has_stored()) shown.mutable_stored()->clear_tokens();
  Json json = ToJson(shown);
  if (shown.has_stored()) json["stored"].erase("tokens");
  return json;
}

// Decides which events are shown: those after the snapshot. A watch begins with
// a snapshot, and has another after it has lost events.
class Filter {
 public:
  explicit Filter(bool with_snapshot) : with_snapshot_(with_snapshot) {}

  bool Shows(const v1::Event& event) {
    if (event.has_snapshot_end()) {
      is_live_ = true;
      return with_snapshot_;
    }
    if (event.has_lost()) {
      is_live_ = false;
      return true;
    }
    return is_live_ || with_snapshot_;
  }

 private:
  const bool with_snapshot_;
  bool is_live_ = false;
};

}  // namespace

absl::Status Watch(const Context& context) {
  if (!context.options.kv_events.empty()) return WatchKvEvents(context);
  Filter filter(context.options.snapshot);
  uint32_t shown = 0;
  return context.server.WatchEvents([&](const v1::Event& event) {
    if (!filter.Shows(event)) return true;
    if (context.output.is_table()) {
      context.output.Print(
          absl::StrCat(event.sequence(), " ", EventText(event), "\n"));
    } else {
      context.output.PrintNext(EventJson(event));
    }
    return ++shown != context.options.count;
  });
}

}  // namespace pando::ctl
