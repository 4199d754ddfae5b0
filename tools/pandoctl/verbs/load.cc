// pandoctl replay, bench: requests of a recorded trace, or made up, as engines
// would send them.

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "replay/made_up_trace.h"
#include "replay/replays.h"
#include "replay/trace.h"
#include "tools/pandoctl/confirm.h"
#include "tools/pandoctl/progress_bar.h"
#include "tools/pandoctl/verbs.h"

namespace pando::ctl {
namespace {

constexpr uint64_t kMaxBlocks = 50'000'000;

// Adds the anchors, for a pool as large as the one that was replayed on.
absl::Status AddAnchors(Server& server, const replay::Trace& trace,
                        replay::Report& report) {
  ASSIGN_OR_RETURN(const auto described, server.Ask(v1::DescribePoolRequest()));
  const v1::PoolDescription& pool = described.pool();
  report.pool_tokens =
      uint64_t{pool.capacity_pages()} * pool.layout().page_tokens();
  report.block_lru = replay::BlockLruHits(trace, report.pool_tokens);
  report.unlimited = replay::UnlimitedCacheHits(trace);
  return absl::OkStatus();
}

absl::Status SendRequests(const Context& context, const replay::Trace& trace) {
  RETURN_IF_ERROR(
      Confirm(context,
              "Fill the cache with prompts that nobody needs? They evict what "
              "others have cached."));
  replay::Options options;
  options.address = context.server.address();
  options.tls = context.server.access().tls;
  options.token = context.server.access().token;
  options.timeout = absl::Seconds(context.options.timeout_s);
  options.clients = context.options.clients;
  options.use_handles = context.options.handles;
  options.transport = context.options.transport;
  absl::StatusOr<replay::Report> report = [&] {
    const ProgressBar bar(trace.requests.size(), "requests");
    return replay::ReplayThroughPandod(
        options, trace, [&](uint64_t requests) { bar.Show(requests); });
  }();
  // Asked after the replay, which forks and so must be the first to use gRPC; a
  // failed replay also says best why it failed.
  RETURN_IF_ERROR(context.server.Ask(v1::GetStatsRequest()).status());
  if (!report.ok()) return report.status();
  RETURN_IF_ERROR(AddAnchors(context.server, trace, *report));
  if (context.output.is_table()) {
    context.output.Print(replay::ToTable(*report));
  } else {
    context.output.Print(Json::parse(replay::ToJson({*report}))[0]);
  }
  return report->is_ok() ? absl::OkStatus()
                         : absl::UnknownError(
                               "the accounts of the cache do not add up; does "
                               "anybody else use this pandod?");
}

}  // namespace

absl::Status Replay(const Context& context) {
  ASSIGN_OR_RETURN(
      const replay::Trace trace,
      replay::ReadTrace(context.options.trace, context.options.requests));
  return SendRequests(context, trace);
}

absl::Status Bench(const Context& context) {
  const replay::MadeUpChats& chats = context.options.chats;
  if (chats.system_prompt_tokens > chats.prompt_tokens) {
    return absl::InvalidArgumentError(
        "--system-prompt-tokens is more than --prompt-tokens");
  }
  // A trace remembers the prompts in blocks as long as a system prompt.
  const uint64_t blocks =
      uint64_t{chats.requests} *
      (chats.prompt_tokens / std::max(chats.system_prompt_tokens, 1u));
  if (chats.system_prompt_tokens > 0 && blocks > kMaxBlocks) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--requests times --prompt-tokens over --system-prompt-tokens is ",
        blocks, "; at most ", kMaxBlocks));
  }
  return SendRequests(context, replay::MakeUpTrace(chats));
}

}  // namespace pando::ctl
