#include "replay/worker.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "base/status_macros.h"
#include "replay/block_handles.h"

namespace pando::replay {
namespace {

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

uint32_t NsSince(int64_t begin_ns) {
  return static_cast<uint32_t>(std::min<int64_t>(
      NowNs() - begin_ns, std::numeric_limits<uint32_t>::max()));
}

// Serves one request after another.
class Worker {
 public:
  Worker(CacheCalls& cache, Floor* floor, const Trace& trace,
         const WorkerOptions& options)
      : cache_(cache),
        floor_(floor),
        trace_(trace),
        options_(options),
        handles_(trace, cache.page_tokens()),
        ends_(options.tell_ends ? FindEnds(trace)
                                : std::vector<bool>(trace.requests.size())) {}

  absl::Status Serve(size_t number) {
    const TraceRequest& request = trace_.requests[number];
    // This is not timed: an engine gets its tokens from the tokenizer, and
    // knows where its conversations end.
    MakeTokens(trace_, request, &tokens_);
    const Handle after =
        options_.use_handles ? handles_.Find(request) : Handle();
    const uint32_t output = options_.with_output ? request.output_tokens : 0;

    CallTimes& times = result_.calls.emplace_back();
    const int64_t begin = NowNs();
    const absl::StatusOr<std::optional<Admission>> admission =
        cache_.Admit(tokens_, {.after = after,
                               .reserve_tokens = request.input_tokens + output,
                               .output_tokens = request.output_tokens});
    times.match_ns = NsSince(begin);
    if (!admission.ok()) return admission.status();
    result_.totals.input_tokens += request.input_tokens;
    if (!admission->has_value()) {
      ++result_.totals.exhausted;
      return absl::OkStatus();
    }
    Count(after, **admission);

    // Here an engine computes the KV of the rest into the reserved pages.
    const int64_t computed = NowNs();
    const absl::StatusOr<Handle> end = cache_.Finish(ends_[number]);
    times.insert_ns = NsSince(computed);
    if (!end.ok()) return end.status();
    Remember(request, **admission, *end);
    return RunFloor(**admission, times);
  }

  WorkerResult TakeResult() { return std::move(result_); }

 private:
  void Count(const Handle& after, const Admission& admission) {
    WorkerTotals& totals = result_.totals;
    totals.matched_tokens += admission.matched_tokens;
    totals.sent_tokens += tokens_.size() - admission.skipped_tokens;
    if (after.tokens == 0) return;
    ++totals.handles;
    if (admission.skipped_tokens == 0) ++totals.handles_gone;
  }

  void Remember(const TraceRequest& request, const Admission& admission,
                const Handle& end) {
    if (!options_.use_handles) return;
    handles_.Add(request, 0, admission.handle);
    handles_.Add(request, admission.matched_tokens, end);
  }

  absl::Status RunFloor(const Admission& admission, CallTimes& times) {
    if (floor_ == nullptr) return absl::OkStatus();
    const auto rest =
        static_cast<uint32_t>(tokens_.size()) - admission.matched_tokens;
    const int64_t begin = NowNs();
    const absl::Status status =
        floor_->Run(std::span(tokens_).subspan(admission.skipped_tokens),
                    rest / cache_.page_tokens());
    times.floor_ns = NsSince(begin);
    return status;
  }

  CacheCalls& cache_;
  Floor* const floor_;
  const Trace& trace_;
  const WorkerOptions options_;
  BlockHandles handles_;
  const std::vector<bool> ends_;  // by the number of the request
  std::vector<Token> tokens_;
  WorkerResult result_;
};

}  // namespace

absl::StatusOr<WorkerResult> Serve(CacheCalls& cache, Floor* floor,
                                   const Trace& trace,
                                   const WorkerOptions& options) {
  Worker worker(cache, floor, trace, options);
  const int64_t begin = NowNs();
  for (size_t i = options.index; i < trace.requests.size();
       i += options.count) {
    RETURN_IF_ERROR(worker.Serve(i));
  }
  WorkerResult result = worker.TakeResult();
  result.begin_ns = begin;
  result.end_ns = NowNs();
  return result;
}

}  // namespace pando::replay
