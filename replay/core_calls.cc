#include "replay/core_calls.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "core/requests/errors.h"

namespace pando::replay {
namespace {

constexpr SessionId kSession{1};

Handle FromCore(const PrefixHandle& handle) {
  return {.node = handle.node, .tokens = handle.tokens};
}

}  // namespace

CoreCalls::CoreCalls(const PrefixCache::Options& options) : cache_(options) {
  cache_.OpenSession(kSession, "replay");
}

absl::StatusOr<std::optional<Admission>> CoreCalls::Admit(
    std::span<const Token> prompt, const AdmitOptions& options) {
  prompt_tokens_ = static_cast<uint32_t>(prompt.size());
  output_tokens_ = options.output_tokens;
  const auto match = [&](const PrefixHandle& after) {
    return cache_.Match({.session = kSession,
                         .ns = ns_,
                         .tokens = prompt.subspan(after.tokens),
                         .max_tokens = std::max(prompt_tokens_, 1u) - 1,
                         .lock = true,
                         .reserve_tokens = options.reserve_tokens,
                         .after = after});
  };
  PrefixHandle after{.node = options.after.node,
                     .tokens = options.after.tokens};
  absl::StatusOr<MatchResult> result = match(after);
  if (ReasonOf(result.status()) == Reason::kHandleGone) {
    after = PrefixHandle();
    result = match(after);
  }
  if (ReasonOf(result.status()) == Reason::kPoolExhausted) return std::nullopt;
  if (!result.ok()) return result.status();
  match_ = *std::move(result);
  return Admission{.matched_tokens = match_.matched_tokens,
                   .skipped_tokens = after.tokens,
                   .handle = FromCore(match_.handle)};
}

absl::StatusOr<Handle> CoreCalls::Finish(bool has_ended) {
  const uint32_t rest = prompt_tokens_ - match_.matched_tokens;
  const std::span<const PageId> reserved = match_.reserved;
  const size_t whole_pages = rest / cache_.page_tokens();
  ASSIGN_OR_RETURN(
      const InsertResult result,
      cache_.Insert({.session = kSession,
                     .ns = ns_,
                     .tokens = {},
                     .pages = reserved.first(whole_pages),
                     .anchor = match_.lock,
                     .lock_action = LockAction::kUnlock,
                     .free_pages = reserved.subspan(whole_pages),
                     .prompt_tokens = rest,
                     .output_tokens = output_tokens_,
                     .expected_reuse = has_ended ? ExpectedReuse::kEnded
                                                 : ExpectedReuse::kUnknown}));
  return FromCore(result.handle);
}

Accounts CoreCalls::TakeAccounts() {
  const CacheStats stats = cache_.Stats();
  const CacheCounters& counters = stats.counters;
  const PageCounts& pages = stats.pages;
  return {.policy = std::string(EvictionPolicyName(stats.eviction_policy)),
          .hit_tokens = counters.hit_tokens,
          .inserted_pages = counters.inserted_pages,
          .evicted_pages = counters.evicted_pages_for_allocation,
          .allocation_failures = counters.allocation_failures,
          .locks = stats.locks,
          .pages = {.free = pages.free,
                    .reserved = pages.reserved,
                    .evictable = pages.evictable,
                    .protected_pages = pages.protected_,
                    .quarantined = pages.quarantined,
                    .padding = pages.padding,
                    .capacity = pages.capacity},
          .invariant_violations = cache_.CheckInvariants()};
}

}  // namespace pando::replay
