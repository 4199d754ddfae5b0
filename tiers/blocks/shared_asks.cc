#include "tiers/blocks/shared_asks.h"

#include <pthread.h>

#include <algorithm>
#include <deque>
#include <utility>

#include "os/logging/log.h"
#include "os/monotonic_clock.h"
#include "tiers/blocks/wanted_blocks.h"
#include "tiers/shared/touch_in_time.h"

namespace pando {

SharedAsks::SharedAsks(const Parts& parts)
    : parts_(parts), askers_(1), thread_([this] { Run(); }) {}

SharedAsks::~SharedAsks() {
  {
    absl::MutexLock hold(&mutex_);
    is_stopped_ = true;
  }
  thread_.join();
}

bool SharedAsks::MayAsk(const KnownKind& kind) const {
  {
    absl::MutexLock hold(&mutex_);
    if (is_draining_ || is_stopped_) return false;
  }
  return kind.is_newest && breaker_.Admits(MonotonicNow()) &&
         parts_.source->MayRead(kind) && parts_.loads->MayLoad(kind);
}

std::vector<SharedAsks::Known> SharedAsks::Look(
    std::span<const BlockName> names) const {
  const std::vector<bool> are_loading = parts_.loads->AreLoading(names);
  const std::vector<bool> are_absent = parts_.shared->absent().Have(names);
  std::vector<Known> known(names.size(), Known::kMayHave);
  for (size_t i = 0; i < names.size(); ++i) {
    if (are_loading[i]) {
      known[i] = Known::kIsLoading;
    } else if (are_absent[i]) {
      known[i] = Known::kLacks;
    }
  }
  return known;
}

bool SharedAsks::IsWaiting(const KnownKind& kind, std::string_view keys) const {
  const SharedQuestion::Id id = SharedQuestion::IdOf(kind, keys);
  absl::MutexLock hold(&mutex_);
  return queue_.Has(id);
}

bool SharedAsks::Begin(SharedQuestion question) {
  const size_t keys = question.answers.size();
  absl::StatusOr<KeptBytes> account = parts_.cache->Keep(
      question.asked_by,
      sizeof(SharedQuestion) + question.keys.size() + question.before.size() +
          keys * sizeof(BlockPlace) +
          question.asked.size() * (sizeof(uint32_t) + sizeof(BlockName)));
  if (!account.ok()) return false;
  question.account = *std::move(account);
  absl::MutexLock hold(&mutex_);
  if (is_draining_ || is_stopped_) return false;
  if (queue_.Has(question.id())) return true;
  if (queue_.IsFullFor(question.asked_by)) return false;
  queue_.Add(std::move(question));
  return true;
}

void SharedAsks::BeginDrain() {
  absl::MutexLock hold(&mutex_);
  is_draining_ = true;
}

void SharedAsks::Run() {
  pthread_setname_np(pthread_self(), "block-ask");
  while (true) {
    SharedQuestion question;
    // These are destroyed after mutex_ is released, because their accounts take
    // the mutex of the cache.
    std::deque<SharedQuestion> dropped;
    {
      absl::MutexLock hold(&mutex_);
      mutex_.Await(absl::Condition(this, &SharedAsks::HasWork));
      if (is_stopped_) return;
      question = queue_.Take();
    }
    const SharedQuestion::Id id = question.id();
    const bool is_asked = parts_.cache->CheckSession(question.asked_by).ok();
    const bool is_answered = is_asked && Step(question);
    if (is_answered) Answer(question);
    absl::MutexLock hold(&mutex_);
    if (is_answered || !is_asked) queue_.End(id);
    if (!is_asked) {
      dropped = queue_.TakeAll(question.asked_by);
    } else if (!is_answered) {
      queue_.PutBack(std::move(question));
    }
  }
}

bool SharedAsks::Step(SharedQuestion& question) {
  const std::span<const uint32_t> next = question.Next();
  std::optional<std::vector<bool>> present;
  if (MayAsk(*question.kind)) present = Ask(question, next);
  if (present.has_value()) {
    question.Take(*present);
    return question.Next().empty();
  }
  // The rest counts as absent, so that calls do not go on waiting for it.
  for (size_t i = question.begin; i < question.end; ++i) {
    question.absent.push_back(question.NameAt(question.asked[i]));
  }
  return true;
}

// An answer after the deadline is not used, because the store may have left
// keys undone.
std::optional<std::vector<bool>> SharedAsks::Ask(
    const SharedQuestion& question, std::span<const uint32_t> positions) {
  std::vector<BlockKey> keys;
  for (const uint32_t position : positions) {
    keys.push_back(
        SharedBlocks::KeyOf(question.NameAt(position), position + 1));
  }
  const absl::Time deadline = MonotonicNow() + parts_.timeout;
  absl::StatusOr<std::vector<bool>> present = TouchInTime(
      &parts_.shared->store(), askers_, std::move(keys),
      KnownBlocks<BlockName>::PresentPeriod(), deadline, parts_.timeout);
  if (MonotonicNow() >= deadline) present = DeadlineThreads::Timeout();
  if (present.ok()) {
    breaker_.Succeeded();
    return *std::move(present);
  }
  breaker_.Failed(MonotonicNow());
  parts_.counts->failed_reads += positions.size();
  Log(LogLevel::kError, "the shared store does not say which blocks it has",
      {{"error", present.status().message()}});
  return std::nullopt;
}

// Blocks whose load is refused count as absent. Blocks for which the account of
// the session has no room do not: other sessions may load them.
void SharedAsks::Answer(SharedQuestion& question) {
  const BlockKeys row = question.row();
  const std::vector<uint32_t> wanted =
      WantedBlocks(row, question.answers, question.kept);
  { const KeptBytes done = std::move(question.account); }
  std::vector<BlockName> refused;
  for (size_t i = 0; i < wanted.size(); i += KeptBlocks::kMostNames) {
    const auto some = std::span(wanted).subspan(
        i, std::min(KeptBlocks::kMostNames, wanted.size() - i));
    const std::optional<std::vector<bool>> are_loading =
        parts_.loads->Begin(question.asked_by, question.kind, row, some);
    if (!are_loading.has_value()) break;
    for (size_t j = 0; j < some.size(); ++j) {
      if (!(*are_loading)[j]) refused.push_back(question.NameAt(some[j]));
    }
  }
  parts_.shared->NoteAbsent(question.absent);
  parts_.shared->absent().Add(refused);
}

}  // namespace pando
