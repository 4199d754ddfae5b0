#include "service/tiers/remote_tier.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "service/logging/log.h"
#include "service/process/monotonic_clock.h"

namespace pando {
namespace {

constexpr size_t kAskers = 2;
// That work on the parts of a window.
constexpr size_t kPartThreads = 4;
// What is on its way at once, but for one block at least.
constexpr size_t kWindowBytes = size_t{32} << 20;
constexpr size_t kMaxWindowBlocks = 32;
// The store may end by itself in half of each of these times.
constexpr absl::Duration kAskTimeout = absl::Milliseconds(250);
constexpr absl::Duration kGetTimeout = absl::Seconds(2);
constexpr absl::Duration kPutTimeout = absl::Seconds(5);

size_t WindowBlocks(size_t value_bytes) {
  return std::clamp<size_t>(kWindowBytes / value_bytes, 1, kMaxWindowBlocks);
}

absl::Status Timeout() { return absl::DeadlineExceededError("timeout"); }

// Whether the store did what it should, be the block there or not.
bool IsAnswer(const absl::Status& status) {
  return status.ok() || absl::IsNotFound(status) || absl::IsDataLoss(status);
}

// `work` for the number of each part of a window.
template <typename Work>
std::vector<DeadlineThreads::Work> ForEachPart(Work work) {
  std::vector<DeadlineThreads::Work> parts;
  for (size_t i = 0; i < kPartThreads; ++i) {
    parts.emplace_back([work, i] { work(i); });
  }
  return parts;
}

}  // namespace

RemoteTier::Window::Window(size_t count, size_t value_bytes)
    : values(std::make_unique_for_overwrite<std::byte[]>(count * value_bytes)),
      blocks(count) {
  for (size_t i = 0; i < count; ++i) {
    blocks[i].value = {values.get() + i * value_bytes, value_bytes};
  }
}

std::span<RemoteStore::Transfer> RemoteTier::Window::Part(size_t number) {
  const size_t begin = blocks.size() * number / kPartThreads;
  const size_t end = blocks.size() * (number + 1) / kPartThreads;
  return std::span(blocks).subspan(begin, end - begin);
}

RemoteTier::RemoteTier(BlockValues values, std::unique_ptr<RemoteStore> store)
    : values_(std::move(values)),
      store_(std::move(store)),
      window_blocks_(WindowBlocks(values_.value_bytes())),
      eraser_(store_.get()),
      askers_(kAskers),
      getters_(kPartThreads),
      putters_(kPartThreads) {}

bool RemoteTier::MayLoad() const {
  const absl::Time now = MonotonicNow();
  return !eraser_.is_erasing() && ask_breaker_.Admits(now) &&
         load_breaker_.Admits(now);
}

bool RemoteTier::MayStore() const {
  return !eraser_.is_erasing() && store_breaker_.Admits(MonotonicNow());
}

void RemoteTier::LoadFailed(CircuitBreaker& breaker, size_t pages,
                            const absl::Status& status) {
  breaker.Failed(MonotonicNow());
  failed_reads_ += pages;
  Log(LogLevel::kError, "shared pages cannot be read",
      {{"pages", pages}, {"error", status.message()}});
}

void RemoteTier::StoreFailed(size_t pages, const absl::Status& status) {
  store_breaker_.Failed(MonotonicNow());
  failed_writes_ += pages;
  Log(LogLevel::kError, "pages cannot be shared",
      {{"pages", pages}, {"error", status.message()}});
}

size_t RemoteTier::CountPresent(uint64_t ns_digest,
                                std::span<const PageHash> run) {
  if (run.empty() || !MayLoad()) return 0;
  struct Question {
    std::vector<BlockKey> keys;
    absl::StatusOr<size_t> present = Timeout();
  };
  const auto question = std::make_shared<Question>();
  for (const PageHash& hash : run) {
    question->keys.push_back({.ns_digest = ns_digest, .hash = hash});
  }
  const absl::Time deadline = MonotonicNow() + kAskTimeout / 2;
  const bool is_in_time = askers_.Run(
      {[this, question, deadline] {
        question->present = store_->CountPresent(question->keys, deadline);
      }},
      kAskTimeout);
  if (!is_in_time || !question->present.ok()) {
    LoadFailed(ask_breaker_, run.size(),
               is_in_time ? question->present.status() : Timeout());
    return 0;
  }
  const size_t present = *question->present;
  if (present < run.size() && MonotonicNow() >= deadline) {
    // Others wait to be looked up meanwhile.
    ask_breaker_.Failed(MonotonicNow());
    return present;
  }
  ask_breaker_.Succeeded();
  // Others may have erased what was known.
  known_.Remove(run.subspan(present));
  return present;
}

size_t RemoteTier::Load(uint64_t ns_digest, std::span<const PageHash> run,
                        std::span<const PageId> pages) {
  size_t loaded = 0;
  while (loaded < run.size() && MayLoad()) {
    const size_t count = std::min(window_blocks_, run.size() - loaded);
    const size_t more = LoadWindow(ns_digest, run.subspan(loaded, count),
                                   pages.subspan(loaded, count));
    loaded += more;
    if (more < count) break;
  }
  loaded_ += loaded;
  return loaded;
}

size_t RemoteTier::LoadWindow(uint64_t ns_digest, std::span<const PageHash> run,
                              std::span<const PageId> pages) {
  const auto window =
      std::make_shared<Window>(run.size(), values_.value_bytes());
  for (size_t i = 0; i < run.size(); ++i) {
    window->blocks[i].key = {.ns_digest = ns_digest, .hash = run[i]};
  }
  const absl::Time deadline = MonotonicNow() + kGetTimeout / 2;
  const bool is_in_time =
      getters_.Run(ForEachPart([this, window, deadline](size_t part) {
                     GetAndVerify(window->Part(part), deadline);
                   }),
                   kGetTimeout);
  if (!is_in_time) {
    LoadFailed(load_breaker_, run.size(), Timeout());
    return 0;
  }
  EndLoad(*window);
  size_t loaded = 0;
  for (; loaded < run.size() && window->blocks[loaded].status.ok(); ++loaded) {
    const absl::Status copied =
        values_.CopyIn(window->blocks[loaded].value, pages[loaded]);
    if (copied.ok()) continue;
    // That says nothing of the store.
    ++failed_reads_;
    Log(LogLevel::kError, "a shared page cannot be copied to the pool",
        {{"page", pages[loaded].value()}, {"error", copied.message()}});
    break;
  }
  return loaded;
}

void RemoteTier::GetAndVerify(std::span<RemoteStore::Transfer> blocks,
                              absl::Time deadline) {
  store_->Get(blocks, deadline);
  for (RemoteStore::Transfer& block : blocks) {
    if (block.status.ok()) {
      block.status = values_.Verify(block.key.hash, block.value);
    }
    if (absl::IsDataLoss(block.status)) Erase(block.key);
  }
}

void RemoteTier::EndLoad(const Window& window) {
  size_t failed = 0;
  absl::Status status;
  for (const RemoteStore::Transfer& block : window.blocks) {
    if (absl::IsDataLoss(block.status)) {
      ++damaged_;
      Log(LogLevel::kError, "a shared page is not what it was",
          {{"error", block.status.message()}});
    } else if (!IsAnswer(block.status)) {
      ++failed;
      status = block.status;
    }
  }
  if (failed > 0) {
    LoadFailed(load_breaker_, failed, status);
  } else {
    load_breaker_.Succeeded();
  }
}

bool RemoteTier::Erase(const BlockKey& key) {
  known_.Remove({&key.hash, 1});
  const absl::Status erased = store_->Erase(key);
  if (erased.ok()) return true;
  Log(LogLevel::kError, "a shared page cannot be erased",
      {{"error", erased.message()}});
  return false;
}

void RemoteTier::Forget(std::optional<uint64_t> ns_digest) {
  known_.Forget();
  eraser_.Erase(ns_digest);
}

size_t RemoteTier::capacity_pages() const {
  return std::numeric_limits<size_t>::max();
}

size_t RemoteTier::CountStored(std::span<const PageHash> run) const {
  return known_.CountKnown(run);
}

bool RemoteTier::TouchIfStored(std::span<const PageHash> prompt) {
  return !known_.IsPeriodOver() && known_.CountKnown(prompt) == prompt.size();
}

// A store that is told that blocks are in use says which of them it has.
void RemoteTier::BeginPrompt(uint64_t ns_digest,
                             std::span<const PageHash> prompt) {
  struct Question {
    std::vector<BlockKey> keys;
    absl::StatusOr<std::vector<bool>> are_present = Timeout();
  };
  known_.BeginPeriod();
  const auto question = std::make_shared<Question>();
  const uint64_t generation = known_.generation();
  question->keys = known_.UnknownOf(ns_digest, prompt, 0);
  if (question->keys.empty() || !MayStore()) return;
  const absl::Time deadline = MonotonicNow() + kPutTimeout / 2;
  const bool is_in_time = putters_.Run(
      {[this, question, used = known_.period(), deadline] {
        question->are_present = store_->Touch(question->keys, used, deadline);
      }},
      kPutTimeout);
  if (!is_in_time || !question->are_present.ok()) {
    StoreFailed(0, is_in_time ? question->are_present.status() : Timeout());
    return;
  }
  std::vector<PageHash> present;
  for (size_t i = 0; i < question->keys.size(); ++i) {
    if ((*question->are_present)[i]) present.push_back(question->keys[i].hash);
  }
  known_.Add(present, generation);
  // Else what is missing says more: a full store can be touched, too.
  if (present.size() == question->keys.size()) store_breaker_.Succeeded();
}

void RemoteTier::Store(uint64_t ns_digest, std::span<const PageHash> prompt,
                       size_t begin, std::span<const PageId> pages,
                       const std::function<bool()>& confirm) {
  const uint64_t generation = known_.generation();
  const std::vector<BlockKey> keys =
      known_.UnknownOf(ns_digest, prompt.first(begin + pages.size()), begin);
  if (!MayStore()) {
    confirm();
    dropped_ += keys.size();
    return;
  }
  const auto window =
      std::make_shared<Window>(keys.size(), values_.value_bytes());
  absl::Status copied;
  for (size_t i = 0; i < keys.size() && copied.ok(); ++i) {
    RemoteStore::Transfer& block = window->blocks[i];
    block.key = keys[keys.size() - 1 - i];  // the last one first
    copied = values_.CopyOut(pages[block.key.ordinal - 1 - begin],
                             block.key.hash, block.value);
  }
  if (!confirm()) return;
  if (!copied.ok()) {
    failed_writes_ += keys.size();
    Log(LogLevel::kError, "pages cannot be copied to be shared",
        {{"pages", keys.size()}, {"error", copied.message()}});
    return;
  }
  const absl::Time deadline = MonotonicNow() + kPutTimeout / 2;
  const bool is_in_time =
      putters_.Run(ForEachPart([this, window, used = known_.period(), deadline,
                                generation](size_t part) {
                     Put(window->Part(part), used, deadline, generation);
                   }),
                   kPutTimeout);
  if (is_in_time) {
    EndStore(*window, generation);
  } else {
    StoreFailed(keys.size(), Timeout());
  }
}

// What was forgotten meanwhile may have come after all else was erased.
void RemoteTier::Put(std::span<RemoteStore::Transfer> blocks, absl::Time used,
                     absl::Time deadline, uint64_t generation) {
  store_->Put(blocks, used, deadline);
  if (generation == known_.generation()) return;
  bool are_erased = true;
  for (const RemoteStore::Transfer& block : blocks) {
    are_erased &= Erase(block.key);
  }
  // All of a window is of one namespace, which is erased again.
  if (!are_erased) eraser_.Erase(blocks.front().key.ns_digest);
}

void RemoteTier::EndStore(const Window& window, uint64_t generation) {
  std::vector<PageHash> stored;
  absl::Status status;
  for (const RemoteStore::Transfer& block : window.blocks) {
    if (block.status.ok()) {
      stored.push_back(block.key.hash);
    } else {
      status = block.status;
    }
  }
  known_.Add(stored, generation);
  stored_ += stored.size();
  if (status.ok()) {
    store_breaker_.Succeeded();
  } else {
    StoreFailed(window.blocks.size() - stored.size(), status);
  }
}

TierFigures RemoteTier::figures() const {
  return {
      .page_bytes = values_.page_bytes(),
      .stored_pages = stored_,
      .loaded_pages = loaded_,
      .dropped_pages = dropped_,
      .failed_reads = failed_reads_,
      .failed_writes = failed_writes_,
      .damaged_pages = damaged_,
      .are_loads_refused = ask_breaker_.is_open() || load_breaker_.is_open(),
      .are_stores_refused = store_breaker_.is_open()};
}

}  // namespace pando
