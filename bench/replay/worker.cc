#include "bench/replay/worker.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

namespace pando::replay {
namespace {

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Serves one request after another over one client.
class Worker {
 public:
  Worker(Client& client, uint32_t page_tokens, bool with_output)
      : client_(client), page_tokens_(page_tokens), with_output_(with_output) {}

  absl::Status Serve(const TraceRequest& request) {
    // Not timed: an engine has its tokens from the tokenizer.
    MakeTokens(request, &tokens_);
    result_.input_tokens += request.input_tokens;

    CallTimes times;
    const int64_t begin = NowNs();
    absl::StatusOr<Match> match = Admit(request);
    times.match_ns = static_cast<uint32_t>(NowNs() - begin);
    if (match.ok()) {
      result_.matched_tokens += match->matched_tokens;
      // Here an engine computes the KV of the rest into the reserved pages.
      const int64_t computed = NowNs();
      const absl::Status finished = Finish(*match);
      times.insert_ns = static_cast<uint32_t>(NowNs() - computed);
      if (!finished.ok()) return finished;
    } else if (ReasonOf(match.status()) == reason::kPoolExhausted) {
      ++result_.exhausted;
    } else {
      return match.status();
    }
    result_.calls.push_back(times);
    return absl::OkStatus();
  }

  WorkerResult TakeResult() { return std::move(result_); }

 private:
  absl::StatusOr<Match> Admit(const TraceRequest& request) {
    const uint32_t output = with_output_ ? request.output_tokens : 0;
    return client_.MatchPrefix(
        tokens_,
        // The last token is always computed: its logits are needed.
        {.max_tokens = std::max(request.input_tokens, 1u) - 1,
         .lock = true,
         .reserve_tokens = request.input_tokens + output});
  }

  absl::Status Finish(Match& match) {
    // The prompt is with the lock since its admission.
    const auto rest =
        static_cast<uint32_t>(tokens_.size()) - match.matched_tokens;
    const std::span<const PageId> reserved = match.reserved.ids;
    const size_t whole_pages = rest / page_tokens_;
    return client_
        .Insert({}, reserved.first(whole_pages),
                {.lock = &match.lock,
                 .lock_action = LockAction::kUnlock,
                 .free_page_ids = reserved.subspan(whole_pages),
                 .prompt_tokens = rest})
        .status();
  }

  Client& client_;
  const uint32_t page_tokens_;
  const bool with_output_;
  std::vector<Token> tokens_;
  WorkerResult result_;
};

}  // namespace

absl::StatusOr<WorkerResult> Serve(Client& client,
                                   const std::vector<TraceRequest>& trace,
                                   const WorkerOptions& options) {
  const absl::StatusOr<PoolDescription> pool = client.DescribePool();
  if (!pool.ok()) return pool.status();
  Worker worker(client, pool->layout.page_tokens, options.with_output);
  const int64_t begin = NowNs();
  for (size_t i = options.index; i < trace.size(); i += options.count) {
    if (absl::Status status = worker.Serve(trace[i]); !status.ok()) {
      return status;
    }
  }
  WorkerResult result = worker.TakeResult();
  result.begin_ns = begin;
  result.end_ns = NowNs();
  return result;
}

}  // namespace pando::replay
