#include "replay/client_calls.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"

namespace pando::replay {
namespace {

Handle FromClient(const PrefixHandle& handle) {
  return {.epoch = handle.epoch, .node = handle.node, .tokens = handle.tokens};
}

PrefixHandle ToClient(const Handle& handle) {
  return {.epoch = handle.epoch, .node = handle.node, .tokens = handle.tokens};
}

}  // namespace

absl::StatusOr<std::optional<Admission>> ClientCalls::Admit(
    std::span<const Token> prompt, const AdmitOptions& options) {
  prompt_tokens_ = static_cast<uint32_t>(prompt.size());
  absl::StatusOr<Match> match = client_.MatchPrefix(
      prompt, {.max_tokens = std::max(prompt_tokens_, 1u) - 1,
               .lock = true,
               .reserve_tokens = options.reserve_tokens,
               .after = ToClient(options.after)});
  if (ReasonOf(match.status()) == reason::kPoolExhausted) return std::nullopt;
  if (!match.ok()) return match.status();
  match_ = *std::move(match);
  return Admission{
      .matched_tokens = match_.matched_tokens,
      .skipped_tokens = match_.first_page > 0 ? options.after.tokens : 0,
      .handle = FromClient(match_.handle)};
}

absl::StatusOr<Handle> ClientCalls::Finish(bool has_ended) {
  const uint32_t rest = prompt_tokens_ - match_.matched_tokens;
  const std::span<const PageId> reserved = match_.reserved.ids;
  const size_t whole_pages = rest / page_tokens_;
  ASSIGN_OR_RETURN(
      const InsertResult result,
      client_.Insert({}, reserved.first(whole_pages),
                     {.lock = &match_.lock,
                      .lock_action = LockAction::kUnlock,
                      .free_page_ids = reserved.subspan(whole_pages),
                      .prompt_tokens = rest,
                      .expected_reuse = has_ended ? ExpectedReuse::kEnded
                                                  : ExpectedReuse::kUnknown}));
  return FromClient(result.handle);
}

}  // namespace pando::replay
