#include "tiers/local/local_tier.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/requests/namespace.h"
#include "os/logging/log.h"

namespace pando {
namespace {

constexpr size_t kWriters = 4;
constexpr size_t kReaders = 4;

// One call of Store, which holds one lock, takes at most so many pages.
constexpr size_t kMaxPagesPerStore = 32;

// While so many changes wait for TakeChanges, stored blocks are not reported.
constexpr size_t kMaxChanges = size_t{1} << 16;
// Tell holds the mutex for at most so many pages at a time.
constexpr size_t kMaxPagesPerTell = 1'024;

std::vector<std::unique_ptr<IoQueue>> QueuesOf(const SlotStore& store,
                                               size_t threads) {
  std::vector<std::unique_ptr<IoQueue>> queues;
  for (size_t i = 0; i < threads; ++i) queues.push_back(store.MakeQueue());
  return queues;
}

}  // namespace

LocalTier::LocalTier(std::unique_ptr<PageBlocks> pages,
                     std::unique_ptr<SlotStore> store)
    : pages_(std::move(pages)),
      store_(std::move(store)),
      index_(store_->slots()),
      writers_(QueuesOf(*store_, kWriters), store_->buffer_bytes(),
               SlotStore::kAlignment),
      readers_(QueuesOf(*store_, kReaders), store_->buffer_bytes(),
               SlotStore::kAlignment) {
  Restore();
}

// The times of the last uses are not known any more. Blocks further back in
// their prompts are restored first, so that they are evicted first.
void LocalTier::Restore() {
  std::vector<SlotStore::Found> found = store_->TakeFound();
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) {
                     return a.record.ordinal > b.record.ordinal;
                   });
  absl::MutexLock hold(&mutex_);
  if (!found.empty()) restored_models_.resize(store_->slots());
  for (const auto& [slot, record] : found) {
    restored_models_[slot] = record.model;
    if (!index_.Restore(record.hash, record.ns_digest,
                        {slot, record.checksum})) {
      Erase(slot);  // a duplicate, which a later flush would not find
    }
  }
}

size_t LocalTier::max_pages_per_store() const { return kMaxPagesPerStore; }

size_t LocalTier::CountStored(std::span<const PageHash> run) const {
  absl::MutexLock hold(&mutex_);
  return index_.CountStored(run);
}

bool LocalTier::TouchIfStored(std::span<const PageHash> prompt) {
  absl::MutexLock hold(&mutex_);
  if (index_.CountStored(prompt) < prompt.size()) return false;
  index_.Touch(prompt);
  return true;
}

void LocalTier::Touch(std::span<const PageHash> prompt) {
  absl::MutexLock hold(&mutex_);
  index_.Touch(prompt);
}

void LocalTier::Store(uint64_t ns_digest, std::span<const PageHash> prompt,
                      size_t begin, std::span<const PageId> pages,
                      const std::function<bool()>& confirm) {
  std::vector<Write> writes;
  {
    absl::MutexLock hold(&mutex_);
    for (size_t i = 0; i < pages.size(); ++i) {
      const PageHash& hash = prompt[begin + i];
      const std::optional<uint32_t> slot = index_.BeginStore(hash, ns_digest);
      if (!slot.has_value()) continue;
      writes.push_back(
          {.record = {.hash = hash,
                      .ordinal = static_cast<uint32_t>(begin + i + 1),
                      .ns_digest = ns_digest,
                      .model = model_},
           .page = pages[i],
           .slot = *slot});
    }
  }
  writers_.ForEach(writes.size(),
                   {.begin =
                        [&](size_t i, std::byte* buffer) {
                          return BeginWrite(writes[i], buffer);
                        },
                    .end =
                        [&](size_t i, std::byte*, const absl::Status& moved) {
                          writes[i].is_done = Check(moved, writes[i].slot);
                        }});
  const bool is_confirmed = confirm();
  for (const Write& write : writes) EndWrite(write, is_confirmed);
  Touch(prompt);
}

std::optional<Transfer> LocalTier::BeginWrite(Write& write, std::byte* buffer) {
  std::byte* const block = store_->BlockFor(write.slot, buffer);
  if (!Check(pages_->CopyOut(write.page, block), write.slot) ||
      !Check(store_->EraseRecord(write.slot), write.slot)) {
    return std::nullopt;
  }
  write.record.checksum = pages_->Checksum(block);
  return Transfer{
      .part = store_->PartOf(write.slot), .memory = block, .is_write = true};
}

bool LocalTier::Check(const absl::Status& written, uint32_t slot) {
  if (written.ok()) return true;
  ++failed_writes_;
  Log(LogLevel::kError, "a page cannot be stored",
      {{"slot", slot}, {"error", written.message()}});
  return false;
}

void LocalTier::EndWrite(const Write& write, bool is_confirmed) {
  const bool is_written =
      write.is_done && is_confirmed &&
      Check(store_->WriteRecord(write.slot, write.record), write.slot);
  if (is_written) {
    absl::MutexLock hold(&mutex_);
    if (index_.EndStore(write.record.hash, write.record.checksum)) {
      ++stored_;
      return;
    }
  }
  if (is_written) Erase(write.slot);  // it was forgotten meanwhile
  absl::MutexLock hold(&mutex_);
  index_.AbandonStore(write.record.hash);
}

void LocalTier::Erase(uint32_t slot) const {
  const absl::Status erased = store_->EraseRecord(slot);
  if (erased.ok()) return;
  Log(LogLevel::kError, "a stored page may be found after a restart",
      {{"slot", slot}, {"error", erased.message()}});
}

size_t LocalTier::Load(std::span<const PageHash> run,
                       std::span<const PageId> pages) {
  std::vector<Read> reads;
  for (size_t i = 0; i < run.size(); ++i) {
    reads.push_back({.hash = run[i], .page = pages[i]});
  }
  readers_.ForEach(
      reads.size(),
      {.begin = [&](size_t i,
                    std::byte* buffer) { return BeginRead(reads[i], buffer); },
       .end =
           [&](size_t i, std::byte* buffer, const absl::Status& moved) {
             EndRead(reads[i], buffer, moved);
           }});
  const auto end = std::find_if_not(reads.begin(), reads.end(),
                                    [](const Read& r) { return r.is_done; });
  return static_cast<size_t>(end - reads.begin());
}

std::optional<Transfer> LocalTier::BeginRead(Read& read, std::byte* buffer) {
  absl::MutexLock hold(&mutex_);
  const std::optional<TierIndex::Place> place = index_.BeginLoad(read.hash);
  if (!place.has_value()) return std::nullopt;
  read.place = *place;
  return Transfer{.part = store_->PartOf(place->slot),
                  .memory = store_->BlockFor(place->slot, buffer),
                  .is_write = false};
}

void LocalTier::EndRead(Read& read, std::byte* buffer,
                        const absl::Status& moved) {
  const std::byte* const block = store_->BlockFor(read.place.slot, buffer);
  const bool is_intact = IsIntact(read.place, block, moved);
  read.is_done = is_intact && Fill(read.page, block);
  absl::MutexLock hold(&mutex_);
  index_.EndLoad(read.hash, is_intact);
}

bool LocalTier::IsIntact(const TierIndex::Place& place, const std::byte* block,
                         const absl::Status& moved) {
  if (moved.ok() && pages_->Checksum(block) == place.checksum) return true;
  ++(moved.ok() ? damaged_ : failed_reads_);
  Log(LogLevel::kError, "a stored page is not what it was",
      {{"slot", place.slot},
       {"error", moved.ok() ? "its checksum differs" : moved.message()}});
  Erase(place.slot);
  return false;
}

bool LocalTier::Fill(PageId page, const std::byte* block) {
  const absl::Status copied = pages_->CopyIn(block, page);
  ++(copied.ok() ? loaded_ : failed_reads_);
  if (copied.ok()) return true;
  Log(LogLevel::kError, "a stored page cannot be copied to the pool",
      {{"page", page.value()}, {"error", copied.message()}});
  return false;
}

// A block for which there is no room in the changes is reported when its page
// is used again.
void LocalTier::Tell(const HashedPrompt& prompt) {
  if (!is_followed_) return;
  const auto ns = std::make_shared<const NamespaceKey>(prompt.ns);
  const size_t spelled = prompt.page_tokens + LookaheadOf(prompt.ns);
  for (size_t i = 0; i < prompt.hashes.size();) {
    const size_t end = std::min(i + kMaxPagesPerTell, prompt.hashes.size());
    absl::MutexLock hold(&mutex_);
    NoteGone();
    if (changes_.size() >= kMaxChanges) return;
    for (; i < end; ++i) {
      if (!index_.Tell(prompt.hashes[i])) continue;
      const std::span<const Token> tokens =
          prompt.tokens.subspan(i * prompt.page_tokens, spelled);
      changes_.push_back(
          {.hash = prompt.hashes[i],
           .stored = TierChange::Page{
               .before = i > 0 ? prompt.hashes[i - 1] : PageHash(),
               .ordinal = static_cast<uint32_t>(i + 1),
               .ns = ns,
               .tokens = {tokens.begin(), tokens.end()}}});
    }
  }
}

void LocalTier::NoteGone() {
  for (const PageHash& hash : index_.TakeGone()) {
    changes_.push_back({.hash = hash, .stored = {}});
  }
}

std::vector<TierChange> LocalTier::TakeChanges() {
  absl::MutexLock hold(&mutex_);
  NoteGone();
  return std::exchange(changes_, {});
}

void LocalTier::Forget(std::optional<uint64_t> ns_digest) {
  absl::MutexLock hold(&mutex_);
  for (const TierIndex::Forgotten& block : index_.ForgetAll(ns_digest)) {
    forgotten_.push_back(block);
  }
}

void LocalTier::SetModel(uint32_t model) {
  model_ = model;
  absl::MutexLock hold(&mutex_);
  const std::vector<uint32_t> restored = std::exchange(restored_models_, {});
  if (restored.empty()) return;
  const auto is_another = [&](uint32_t slot) {
    return restored[slot] != model;
  };
  for (const TierIndex::Forgotten& block : index_.ForgetIn(is_another)) {
    forgotten_.push_back(block);
  }
}

void LocalTier::EraseForgotten() {
  std::vector<TierIndex::Forgotten> forgotten;
  {
    absl::MutexLock hold(&mutex_);
    forgotten.swap(forgotten_);
  }
  if (forgotten.empty()) return;
  for (const auto& [hash, slot] : forgotten) {
    Erase(slot);
    absl::MutexLock hold(&mutex_);
    index_.EndLoad(hash, false);
  }
  const absl::Status synced = store_->Sync();
  if (synced.ok()) return;
  Log(LogLevel::kError, "stored pages may be found after a power loss",
      {{"error", synced.message()}});
}

TierFigures LocalTier::figures() const {
  TierFigures figures = {.capacity_pages = store_->slots(),
                         .held_pages = 0,
                         .page_bytes = pages_->block_bytes(),
                         .stored_pages = stored_,
                         .loaded_pages = loaded_,
                         .dropped_pages = dropped_,
                         .failed_reads = failed_reads_,
                         .failed_writes = failed_writes_,
                         .damaged_pages = damaged_};
  absl::MutexLock hold(&mutex_);
  figures.held_pages = index_.stored_blocks();
  return figures;
}

}  // namespace pando
