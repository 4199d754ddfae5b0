#include "tiers/blocks/shared_asks.h"

#include <pthread.h>

#include <algorithm>

#include "os/logging/log.h"
#include "os/monotonic_clock.h"
#include "tiers/blocks/wanted_blocks.h"

namespace pando {
namespace {

constexpr size_t kMostQuestions = 1'024;

}  // namespace

SharedAsks::SharedAsks(const Parts& parts)
    : parts_(parts), askers_(1), thread_([this] { Run(); }) {}

SharedAsks::~SharedAsks() {
  {
    absl::MutexLock hold(&mutex_);
    is_stopped_ = true;
  }
  thread_.join();
}

bool SharedAsks::MayAsk() const {
  {
    absl::MutexLock hold(&mutex_);
    if (is_draining_ || is_stopped_) return false;
  }
  return breaker_.Admits(MonotonicNow()) && parts_.source->MayRead() &&
         parts_.loads->MayLoad();
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

bool SharedAsks::Begin(Question question) {
  const KnownKind& kind = *question.kind;
  const auto name_of = [&](uint32_t position) {
    return kind.NameOf(kind.KeyOf(question.keys, position));
  };
  Id id = {{name_of(question.asked.front()), name_of(question.asked.back())},
           question.asked.size()};
  {
    absl::MutexLock hold(&mutex_);
    if (asking_.contains(id)) return true;
  }
  absl::StatusOr<KeptBytes> account = parts_.cache->Keep(
      question.asked_by,
      sizeof(Waiting) + question.keys.size() + question.before.size() +
          question.answers.size() * sizeof(BlockPlace) +
          question.asked.size() * (sizeof(uint32_t) + sizeof(BlockKey)));
  if (!account.ok()) return false;
  question.account = *std::move(account);
  absl::MutexLock hold(&mutex_);
  if (is_draining_ || is_stopped_ || queue_.size() >= kMostQuestions) {
    return false;
  }
  asking_.insert(id);
  queue_.push_back({std::move(id), std::move(question)});
  return true;
}

void SharedAsks::BeginDrain() {
  absl::MutexLock hold(&mutex_);
  is_draining_ = true;
}

void SharedAsks::Run() {
  pthread_setname_np(pthread_self(), "block-ask");
  while (true) {
    Waiting next;
    {
      absl::MutexLock hold(&mutex_);
      mutex_.Await(absl::Condition(this, &SharedAsks::HasWork));
      if (is_stopped_) return;
      next = std::move(queue_.front());
      queue_.pop_front();
    }
    Answer(std::move(next.question));
    absl::MutexLock hold(&mutex_);
    asking_.erase(next.id);
  }
}

std::vector<bool> SharedAsks::Ask(const Question& question) {
  struct Asked {
    std::vector<BlockKey> keys;
    absl::StatusOr<std::vector<bool>> present = SharedBlocks::Timeout();
  };
  const KnownKind& kind = *question.kind;
  const auto asked = std::make_shared<Asked>();
  for (const uint32_t position : question.asked) {
    asked->keys.push_back(SharedBlocks::KeyOf(
        kind.NameOf(kind.KeyOf(question.keys, position)), position + 1));
  }
  SharedBlocks* const shared = parts_.shared;
  shared->known().BeginPeriod();
  const absl::Time deadline = MonotonicNow() + parts_.timeout / 2;
  const bool is_in_time = askers_.Run(
      {[shared, asked, used = shared->known().period(), deadline] {
        asked->present = shared->store().Touch(asked->keys, used, deadline);
      }},
      parts_.timeout);
  if (is_in_time && asked->present.ok()) {
    breaker_.Succeeded();
    return *std::move(asked->present);
  }
  breaker_.Failed(MonotonicNow());
  ++parts_.counts->failed_reads;
  const absl::Status error =
      is_in_time ? asked->present.status() : SharedBlocks::Timeout();
  Log(LogLevel::kError, "the shared store does not say which blocks it has",
      {{"error", error.message()}});
  return std::vector<bool>(question.asked.size());
}

void SharedAsks::Answer(Question question) {
  const KnownKind& kind = *question.kind;
  if (!MayAsk() || !kind.is_newest) return;
  const std::vector<bool> present = Ask(question);
  const BlockKeys keys = {.kind = kind.kind.number,
                          .keys = question.keys,
                          .before = question.before,
                          .shape = question.shape,
                          .window = question.window};
  std::vector<bool> kept(question.answers.size());
  std::vector<BlockName> absent;
  for (size_t i = 0; i < present.size(); ++i) {
    const uint32_t position = question.asked[i];
    kept[position] = present[i];
    if (!present[i]) {
      absent.push_back(kind.NameOf(kind.KeyOf(question.keys, position)));
    }
  }
  const std::vector<uint32_t> wanted =
      WantedBlocks(keys, question.answers, kept);
  for (size_t i = 0; i < wanted.size(); i += KeptBlocks::kMostNames) {
    const auto some = std::span(wanted).subspan(
        i, std::min(KeptBlocks::kMostNames, wanted.size() - i));
    const std::vector<bool> are_loading =
        parts_.loads->Begin(question.asked_by, question.kind, keys, some);
    for (size_t j = 0; j < some.size(); ++j) {
      if (are_loading[j]) continue;
      absent.push_back(kind.NameOf(kind.KeyOf(question.keys, some[j])));
    }
  }
  parts_.shared->absent().Add(absent);
}

}  // namespace pando
