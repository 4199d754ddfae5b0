// The operations of StressWorker apart from serving requests: waits, repeats,
// scores and calls of operators.

#include <optional>
#include <utility>
#include <vector>

#include "core/requests/errors.h"
#include "tests/core/stress_worker.h"

namespace pando {

// Admits a prompt. If another session computes the prompt's next page, the
// admission waits for it and may give up waiting. Otherwise the admission gets
// its pages at once and gives them up later.
void StressWorker::WaitForAnother() {
  if (given_up_later_.has_value()) return GiveUp();
  const std::vector<Token> prompt = AnyPrompt();
  const auto match = world_.cache.Match(
      {.session = session_,
       .ns = NamespaceOf(prompt),
       .tokens = prompt,
       .lock = true,
       .reserve_tokens = static_cast<uint32_t>(prompt.size()),
       .wait = true});
  if (!match.ok()) return ExpectNoRoom(match.status());
  if (match->wait != WaitId()) {
    ++waits_;
    if (Below(2) == 0) cancelled_waits_ += world_.cache.CancelWait(match->wait);
    return;
  }
  ++locks_taken_;
  hit_tokens_ += match->matched_tokens;
  allocated_pages_ += match->reserved.size();
  given_up_later_ = *match;
}

void StressWorker::GiveUp() {
  const MatchResult admission = *std::exchange(given_up_later_, std::nullopt);
  const std::vector<LockId> locks = {admission.lock};
  const bool unlocks_first = Below(2) == 0;
  if (unlocks_first) ExpectOk(world_.cache.Unlock(session_, locks));
  ExpectOk(world_.cache.Free(session_, admission.reserved));
  if (!unlocks_first) ExpectOk(world_.cache.Unlock(session_, locks));
}

void StressWorker::RepeatAllocation() {
  PrefixCache& cache = world_.cache;
  const AllocateRequest request{.session = session_,
                                .ns = NamespaceOf(std::vector<Token>{Below(2)}),
                                .pages = 1 + Below(3),
                                .request_id = RequestId(++last_request_)};
  const auto first = cache.Allocate(request);
  if (!first.ok()) return ExpectNoRoom(first.status());
  allocated_pages_ += first->pages.size();
  const auto second = cache.Allocate(request);
  ++repeats_;
  Expect(second.ok() && second->pages == first->pages && second->is_repeat,
         "a repeat gets the first answer");
  ExpectOk(cache.Free(session_, first->pages));
}

void StressWorker::Score() {
  const std::vector<Token> prompt = AnyPrompt();
  const auto score =
      world_.cache.Score({.ns = NamespaceOf(prompt), .tokens = prompt});
  ExpectOk(score.status());
  Expect(score->matched_tokens <= prompt.size(), "a score is of the prompt");
}

void StressWorker::Operate() {
  PrefixCache& cache = world_.cache;
  switch (Below(4)) {
    case 0:
      cache.SetEvictionPolicy(static_cast<EvictionPolicyKind>(Below(7)));
      break;
    case 1:
      cache.EvictToWatermark();
      break;
    case 2:
      evicted_pages_ += cache.Evict(Below(20));
      break;
    case 3:
      if (Below(4) == 0) {
        evicted_pages_ += cache.Flush().evicted_pages;
      } else {
        const std::vector<Token> prompt = AnyPrompt();
        evicted_pages_ +=
            cache.FlushNamespace(NamespaceOf(prompt)).evicted_pages;
      }
      break;
  }
}

void StressWorker::ExpectNoRoom(const absl::Status& status) {
  const std::optional<Reason> reason = ReasonOf(status);
  Expect(reason == Reason::kPoolExhausted || reason == Reason::kQuotaExceeded,
         "a call fails only when there is no room");
}

}  // namespace pando
