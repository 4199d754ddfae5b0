#include "service/tiers/remote_tier.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "service/logging/log.h"
#include "service/process/monotonic_clock.h"

namespace pando {
namespace {

constexpr size_t kAskers = 2;
// That work on a window side by side.
constexpr size_t kWindowThreads = 4;
// What a window holds, but for one block at least. Two are stored at once.
constexpr size_t kLoadBytes = size_t{32} << 20;
constexpr size_t kStoreBytes = size_t{16} << 20;
constexpr size_t kMaxWindowBlocks = 32;

size_t BlocksOf(size_t window_bytes, size_t page_bytes) {
  return std::clamp<size_t>(window_bytes / page_bytes, 1, kMaxWindowBlocks);
}

absl::Status Timeout() { return absl::DeadlineExceededError("timeout"); }

// Whether the store did what it should, be the block there or not.
bool IsAnswer(const absl::Status& status) {
  return status.ok() || absl::IsNotFound(status) || absl::IsDataLoss(status);
}

}  // namespace

RemoteTier::RemoteTier(BlockValues values, std::unique_ptr<RemoteStore> store,
                       const Timeouts& timeouts)
    : values_(std::move(values)),
      store_(std::move(store)),
      timeouts_(timeouts),
      load_blocks_(BlocksOf(kLoadBytes, values_.page_bytes())),
      store_blocks_(BlocksOf(kStoreBytes, values_.page_bytes())),
      eraser_(store_.get()),
      askers_(kAskers),
      getters_(kWindowThreads),
      putters_(kWindowThreads) {}

std::shared_ptr<BlockWindow> RemoteTier::NewWindow(size_t blocks) const {
  return std::make_shared<BlockWindow>(blocks, values_.value_bytes());
}

bool RemoteTier::MayLoad() const {
  const absl::Time now = MonotonicNow();
  return !eraser_.is_erasing() && ask_breaker_.Admits(now) &&
         load_breaker_.Admits(now);
}

bool RemoteTier::MayStore() const {
  return !eraser_.is_erasing() && store_breaker_.Admits(MonotonicNow());
}

void RemoteTier::AskFailed(size_t pages, const absl::Status& status) {
  ask_breaker_.Failed(MonotonicNow());
  ReadFailed(pages, status);
}

// A store that gave the front of what it should, be it slow or one of its nodes
// gone, is not left alone.
void RemoteTier::LoadFailed(size_t front, size_t pages,
                            const absl::Status& status) {
  if (front == 0) load_breaker_.Failed(MonotonicNow());
  ReadFailed(pages, status);
}

void RemoteTier::ReadFailed(size_t pages, const absl::Status& status) {
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
  const absl::Time deadline = MonotonicNow() + timeouts_.ask / 2;
  const bool is_in_time = askers_.Run(
      {[this, question, deadline] {
        question->present = store_->CountPresent(question->keys, deadline);
      }},
      timeouts_.ask);
  if (!is_in_time || !question->present.ok()) {
    AskFailed(run.size(), is_in_time ? question->present.status() : Timeout());
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
    const size_t count = std::min(load_blocks_, run.size() - loaded);
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
  if (load_window_ == nullptr) load_window_ = NewWindow(load_blocks_);
  const std::span<RemoteStore::Transfer> blocks =
      load_window_->Begin(run.size());
  for (size_t i = 0; i < run.size(); ++i) {
    blocks[i].key = {.ns_digest = ns_digest, .hash = run[i]};
  }
  const absl::Time deadline = MonotonicNow() + timeouts_.get / 2;
  const auto work = [this, window = load_window_, pages, deadline] {
    GetParts(*window, pages, deadline);
  };
  const bool is_in_time = getters_.Run(
      std::vector<DeadlineThreads::Work>(kWindowThreads, work), timeouts_.get);
  const BlockWindow::Placed placed = load_window_->Close();
  if (is_in_time) {
    EndLoad(placed.front);
  } else {
    load_window_ = nullptr;
    LoadFailed(placed.front, run.size() - placed.front, Timeout());
  }
  if (!placed.status.ok()) {
    // That says nothing of the store.
    ++failed_reads_;
    Log(LogLevel::kError, "a shared page cannot be copied to the pool",
        {{"error", placed.status.message()}});
  }
  return placed.front;
}

// A page is filled while its block is still in the cache of the CPU. `pages`
// are the caller's, and nobody's once the window is closed.
void RemoteTier::GetParts(BlockWindow& window, std::span<const PageId> pages,
                          absl::Time deadline) {
  while (MonotonicNow() < deadline) {
    const std::span<RemoteStore::Transfer> part = window.TakePart();
    if (part.empty()) return;
    store_->Get(part, deadline);
    for (RemoteStore::Transfer& block : part) {
      if (block.status.ok()) {
        block.status = values_.Verify(block.key.hash, block.value);
      }
      if (block.status.ok()) {
        window.Place(block, [&](size_t number) {
          return values_.CopyIn(block.value, pages[number]);
        });
      }
      if (absl::IsDataLoss(block.status)) Erase(block.key);
    }
  }
}

void RemoteTier::EndLoad(size_t front) {
  size_t failed = 0;
  absl::Status status;
  for (const RemoteStore::Transfer& block : load_window_->blocks()) {
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
    LoadFailed(front, failed, status);
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
  const absl::Time deadline = MonotonicNow() + timeouts_.put / 2;
  const bool is_in_time = putters_.Run(
      {[this, question, used = known_.period(), deadline] {
        question->are_present = store_->Touch(question->keys, used, deadline);
      }},
      timeouts_.put);
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
  if (store_window_ == nullptr) {
    store_window_ = spare_window_ != nullptr
                        ? std::exchange(spare_window_, nullptr)
                        : NewWindow(store_blocks_);
  }
  const std::span<RemoteStore::Transfer> blocks =
      store_window_->Begin(keys.size());
  absl::Status copied;
  for (size_t i = 0; i < keys.size() && copied.ok(); ++i) {
    RemoteStore::Transfer& block = blocks[i];
    block.key = keys[keys.size() - 1 - i];  // the last one first
    copied = values_.CopyOut(pages[block.key.ordinal - 1 - begin], block.value);
  }
  if (!confirm()) return;
  if (!copied.ok()) {
    failed_writes_ += keys.size();
    Log(LogLevel::kError, "pages cannot be copied to be shared",
        {{"pages", keys.size()}, {"error", copied.message()}});
    return;
  }
  const std::shared_ptr<BlockWindow> window =
      std::exchange(store_window_, nullptr);
  // Its time would run while it stands behind the one before it.
  EndPrompt();
  const absl::Time deadline = MonotonicNow() + timeouts_.put / 2;
  const auto work = [this, window, used = known_.period(), deadline,
                     generation] {
    PutParts(*window, used, deadline, generation);
  };
  sending_ = {.window = window,
              .generation = generation,
              .batch = putters_.Begin(
                  std::vector<DeadlineThreads::Work>(kWindowThreads, work),
                  timeouts_.put)};
}

void RemoteTier::EndPrompt() {
  if (!sending_.has_value()) return;
  const Sending sent = *std::exchange(sending_, std::nullopt);
  if (putters_.End(sent.batch)) {
    EndStore(sent);
    (store_window_ == nullptr ? store_window_ : spare_window_) = sent.window;
  } else {
    StoreFailed(sent.window->blocks().size(), Timeout());
  }
}

void RemoteTier::PutParts(BlockWindow& window, absl::Time used,
                          absl::Time deadline, uint64_t generation) {
  while (generation == known_.generation() && MonotonicNow() < deadline) {
    const std::span<RemoteStore::Transfer> part = window.TakePart();
    if (part.empty()) return;
    for (const RemoteStore::Transfer& block : part) {
      values_.Seal(block.key.hash, block.value);
    }
    store_->Put(part, used, deadline);
    if (generation != known_.generation()) EraseForgotten(part);
  }
}

// What was forgotten meanwhile may have come after all else was erased.
void RemoteTier::EraseForgotten(std::span<const RemoteStore::Transfer> blocks) {
  bool are_erased = true;
  for (const RemoteStore::Transfer& block : blocks) {
    are_erased &= Erase(block.key);
  }
  // All of a window is of one namespace, which is erased again.
  if (!are_erased) eraser_.Erase(blocks.front().key.ns_digest);
}

void RemoteTier::EndStore(const Sending& sent) {
  const std::span<const RemoteStore::Transfer> blocks = sent.window->blocks();
  if (sent.generation != known_.generation()) {
    dropped_ += blocks.size();  // they were forgotten meanwhile
    return;
  }
  std::vector<PageHash> stored;
  absl::Status status;
  for (const RemoteStore::Transfer& block : blocks) {
    if (block.status.ok()) {
      stored.push_back(block.key.hash);
    } else {
      status = block.status;
    }
  }
  known_.Add(stored, sent.generation);
  stored_ += stored.size();
  if (status.ok()) {
    store_breaker_.Succeeded();
  } else {
    StoreFailed(blocks.size() - stored.size(), status);
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
