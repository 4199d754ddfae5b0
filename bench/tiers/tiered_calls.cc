#include "bench/tiers/tiered_calls.h"

#include <algorithm>

#include "base/status_macros.h"
#include "core/requests/errors.h"

namespace pando::bench {
namespace {

constexpr SessionId kMover{2};
constexpr uint64_t kNamespace = 0;  // there is one
constexpr uint64_t kChecksum = 0;   // there are no bytes

}  // namespace

TieredCalls::TieredCalls(const PrefixCache::Options& options,
                         uint32_t tier_pages, uint32_t min_load_tokens)
    : CoreCalls(options), min_load_tokens_(min_load_tokens), tier_(tier_pages) {
  cache().OpenSession(kMover, "pandod-tiers");
}

absl::StatusOr<std::optional<replay::Admission>> TieredCalls::Admit(
    std::span<const Token> prompt, const replay::AdmitOptions& options) {
  HashPages(prompt);
  RETURN_IF_ERROR(Load(prompt));
  return CoreCalls::Admit(prompt, options);
}

absl::StatusOr<replay::Handle> TieredCalls::Finish(bool has_ended) {
  absl::StatusOr<replay::Handle> end = CoreCalls::Finish(has_ended);
  Store();
  return end;
}

void TieredCalls::HashPages(std::span<const Token> prompt) {
  hashes_.clear();
  PageHash hash = hasher_.Seed(ns_);
  for (; prompt.size() >= page_tokens();
       prompt = prompt.subspan(page_tokens())) {
    hash = hasher_.Next(hash, prompt.first(page_tokens()), ns_.bigram);
    hashes_.push_back(hash);
  }
}

absl::Status TieredCalls::Load(std::span<const Token> prompt) {
  // The last token is never matched.
  const std::span<const Token> wanted =
      prompt.first(std::max<size_t>(prompt.size(), 1) - 1);
  ASSIGN_OR_RETURN(const PrefixScore score,
                   cache().Score({.ns = ns_, .tokens = wanted}));
  const size_t cached = score.matched_tokens / page_tokens();
  const std::span<const PageHash> rest =
      std::span(hashes_).first(wanted.size() / page_tokens()).subspan(cached);
  const size_t pages = tier_.CountStored(rest);
  if (pages == 0 || pages * page_tokens() < min_load_tokens_) {
    return absl::OkStatus();
  }
  const size_t end = (cached + pages) * page_tokens();
  const absl::StatusOr<MatchResult> match =
      cache().Match({.session = kMover,
                     .ns = ns_,
                     .tokens = prompt.first(end),
                     .lock = true,
                     .reserve_tokens = static_cast<uint32_t>(end),
                     .touch = false});
  if (ReasonOf(match.status()) == Reason::kPoolExhausted) {
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(match.status());
  tier_.Touch(hashes_);
  loaded_tokens_ += pages * page_tokens();
  return cache()
      .Insert({.session = kMover,
               .ns = ns_,
               .tokens = {},
               .pages = match->reserved,
               .anchor = match->lock,
               .lock_action = LockAction::kUnlock,
               .prompt_tokens = static_cast<uint32_t>(pages * page_tokens()),
               .is_load = true})
      .status();
}

void TieredCalls::Store() {
  // Room is not made of what the tier has of this prompt already.
  tier_.Touch(hashes_);
  for (const PageHash& hash : hashes_) {
    if (tier_.BeginStore(hash, kNamespace).has_value()) {
      tier_.EndStore(hash, kChecksum);
    }
  }
  tier_.Touch(hashes_);
}

}  // namespace pando::bench
