#include "tiers/blocks/shared_asks.h"

#include <pthread.h>

#include <algorithm>

#include "os/logging/log.h"
#include "os/monotonic_clock.h"
#include "tiers/blocks/wanted_blocks.h"

namespace pando {
namespace {

constexpr size_t kMostQuestions = 1'024;
// So many keys are asked for at once: few at first, because a prompt that is
// new is decided by them.
constexpr size_t kFirstAsked = 64;
constexpr size_t kMostAsked = 512;

// Returns whether the shape asks for a row of blocks, which is searched from
// the end.
bool IsRow(BlockShape shape) {
  return shape == BlockShape::kWindow || shape == BlockShape::kCheckpoint;
}

BlockKeys KeysOf(const SharedAsks::Question& question) {
  return {.kind = question.kind->kind.number,
          .keys = question.keys,
          .before = question.before,
          .shape = question.shape,
          .window = question.window};
}

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

SharedAsks::Id SharedAsks::IdOf(const KnownKind& kind, std::string_view keys,
                                std::span<const uint32_t> asked) {
  return {{kind.NameOf(kind.KeyOf(keys, asked.front())),
           kind.NameOf(kind.KeyOf(keys, asked.back()))},
          asked.size()};
}

bool SharedAsks::IsWaiting(const KnownKind& kind, std::string_view keys,
                           std::span<const uint32_t> asked) const {
  const Id id = IdOf(kind, keys, asked);
  absl::MutexLock hold(&mutex_);
  return asking_.contains(id);
}

bool SharedAsks::Begin(Question question) {
  absl::StatusOr<KeptBytes> account = parts_.cache->Keep(
      question.asked_by,
      sizeof(Waiting) + question.keys.size() + question.before.size() +
          question.answers.size() * sizeof(BlockPlace) +
          question.asked.size() * (sizeof(uint32_t) + sizeof(BlockKey)));
  if (!account.ok()) return false;
  question.account = *std::move(account);
  Id id = IdOf(*question.kind, question.keys, question.asked);
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

SharedAsks::Found SharedAsks::Ask(const Question& question) {
  const KnownKind& kind = *question.kind;
  const BlockKeys keys = KeysOf(question);
  const bool from_back = IsRow(question.shape);
  const absl::Time deadline = MonotonicNow() + parts_.timeout / 2;
  Found found = {.kept = std::vector<bool>(question.answers.size()),
                 .absent = {},
                 .refused = {}};
  const auto set_absent = [&](uint32_t position) {
    found.absent.push_back(kind.NameOf(kind.KeyOf(question.keys, position)));
  };
  std::span<const uint32_t> rest = question.asked;
  size_t most = std::max<size_t>(kFirstAsked, from_back ? keys.window : 0);
  while (!rest.empty()) {
    const size_t count = std::min(most, rest.size());
    const auto some = from_back ? rest.last(count) : rest.first(count);
    const auto present = AskSome(question, some, deadline);
    if (!present.has_value()) {
      parts_.counts->failed_reads += rest.size();
      for (const uint32_t position : rest) set_absent(position);
      return found;
    }
    bool are_all_there = true;
    for (size_t i = 0; i < count; ++i) {
      found.kept[some[i]] = (*present)[i];
      if (!(*present)[i]) set_absent(some[i]);
      are_all_there &= (*present)[i];
    }
    const bool is_decided =
        from_back ? !WantedBlocks(keys, question.answers, found.kept).empty()
                  : question.shape == BlockShape::kPrefix && !are_all_there;
    if (is_decided) break;
    rest = from_back ? rest.first(rest.size() - count) : rest.subspan(count);
    most = std::min(2 * most, kMostAsked);
  }
  breaker_.Succeeded();
  return found;
}

// A store may leave the rest undone when the deadline passes, so an answer that
// comes later is none.
std::optional<std::vector<bool>> SharedAsks::AskSome(
    const Question& question, std::span<const uint32_t> some,
    absl::Time deadline) {
  struct Asked {
    std::vector<BlockKey> keys;
    absl::StatusOr<std::vector<bool>> present = SharedBlocks::Timeout();
  };
  const KnownKind& kind = *question.kind;
  const auto asked = std::make_shared<Asked>();
  for (const uint32_t position : some) {
    asked->keys.push_back(SharedBlocks::KeyOf(
        kind.NameOf(kind.KeyOf(question.keys, position)), position + 1));
  }
  SharedBlocks* const shared = parts_.shared;
  const absl::Time used = KnownBlocks<BlockName>::PresentPeriod();
  const bool is_in_time = askers_.Run({[shared, asked, used, deadline] {
                                        asked->present = shared->store().Touch(
                                            asked->keys, used, deadline);
                                      }},
                                      parts_.timeout) &&
                          MonotonicNow() < deadline;
  if (is_in_time && asked->present.ok()) return *std::move(asked->present);
  breaker_.Failed(MonotonicNow());
  const absl::Status error =
      is_in_time ? asked->present.status() : SharedBlocks::Timeout();
  Log(LogLevel::kError, "the shared store does not say which blocks it has",
      {{"error", error.message()}});
  return std::nullopt;
}

void SharedAsks::Answer(Question question) {
  const KnownKind& kind = *question.kind;
  if (!MayAsk() || !kind.is_newest) return;
  Found found = Ask(question);
  const BlockKeys keys = KeysOf(question);
  const std::vector<uint32_t> wanted =
      WantedBlocks(keys, question.answers, found.kept);
  for (size_t i = 0; i < wanted.size(); i += KeptBlocks::kMostNames) {
    const auto some = std::span(wanted).subspan(
        i, std::min(KeptBlocks::kMostNames, wanted.size() - i));
    const std::vector<bool> are_loading =
        parts_.loads->Begin(question.asked_by, question.kind, keys, some);
    for (size_t j = 0; j < some.size(); ++j) {
      if (are_loading[j]) continue;
      found.refused.push_back(kind.NameOf(kind.KeyOf(question.keys, some[j])));
    }
  }
  parts_.shared->IsAbsent(found.absent);
  parts_.shared->absent().Add(found.refused);
}

}  // namespace pando
