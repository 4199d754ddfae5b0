#include "tiers/blocks/block_stores.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "absl/time/time.h"
#include "os/logging/log.h"
#include "tiers/blocks/sealed_block.h"

namespace pando {
namespace {

// Waiting notes take at most so many bytes. Use may fill only half of it, so
// that it leaves room for new blocks.
constexpr size_t kMostQueuedBytes = size_t{64} << 20;
// So many bytes are copied under one lock, unless one block is larger.
constexpr size_t kBatchBytes = size_t{16} << 20;
constexpr size_t kMostBatchBlocks = 256;
constexpr absl::Duration kEraseAgain = absl::Seconds(1);

}  // namespace

BlockStores::BlockStores(const Parts& parts, std::function<void()> on_erased)
    : parts_(parts),
      on_erased_(std::move(on_erased)),
      thread_([this] { Run(); }) {}

BlockStores::~BlockStores() {
  {
    absl::MutexLock hold(&mutex_);
    is_stopped_ = true;
  }
  thread_.join();
}

void BlockStores::Store(std::vector<KeysOfKind> keys) {
  Queue({.keys = std::move(keys), .stores = true}, kMostQueuedBytes);
}

void BlockStores::Use(std::vector<KeysOfKind> keys, bool stores) {
  Queue({.keys = std::move(keys), .stores = stores}, kMostQueuedBytes / 2);
}

void BlockStores::Queue(Note note, size_t most_bytes) {
  note.bytes = sizeof(Note);
  for (const KeysOfKind& keys : note.keys) {
    note.bytes += sizeof(KeysOfKind) + keys.keys.size();
    const auto kind = parts_.kept->Find(keys.kind);
    if (kind != nullptr) note.count += keys.keys.size() / kind->kind.key_bytes;
  }
  absl::MutexLock hold(&mutex_);
  if (is_draining_ || queued_bytes_ + note.bytes > most_bytes) {
    if (note.stores) parts_.counts->dropped_blocks += note.count;
    return;
  }
  queued_bytes_ += note.bytes;
  queue_.push_back(std::move(note));
}

void BlockStores::Erase(uint64_t kind, uint64_t bytes) {
  absl::MutexLock hold(&mutex_);
  erasures_.push_back({kind, bytes});
  ++last_erasure_;
}

uint64_t BlockStores::erasures() const {
  absl::MutexLock hold(&mutex_);
  return last_erasure_;
}

bool BlockStores::WasErased(uint64_t erasures) const {
  absl::MutexLock hold(&mutex_);
  return erased_ >= erasures;
}

void BlockStores::BeginDrain() {
  std::deque<Note> dropped;  // is destroyed after the mutex: it takes long
  absl::MutexLock hold(&mutex_);
  is_draining_ = true;
  dropped.swap(queue_);
  queued_bytes_ = 0;
}

void BlockStores::Run() {
  pthread_setname_np(pthread_self(), "block-store");
  TakeStock();
  while (EraseAll()) {
    Note note;
    {
      absl::MutexLock hold(&mutex_);
      if (!may_free_)
        mutex_.Await(absl::Condition(this, &BlockStores::HasWork));
      if (is_stopped_) return;
      if (!queue_.empty()) {
        note = std::move(queue_.front());
        queue_.pop_front();
        queued_bytes_ -= note.bytes;
      } else if (!erasures_.empty()) {
        continue;
      }
    }
    for (const KeysOfKind& keys : note.keys) {
      if (!EraseAll()) return;
      StoreKeys(keys, note.stores);
    }
    // Files of renewed kinds are deleted while there is nothing else to do.
    if (note.keys.empty()) FreeSome();
  }
}

bool BlockStores::EraseAll() {
  while (true) {
    Erasure erasure = {};
    {
      absl::MutexLock hold(&mutex_);
      if (is_stopped_) return false;
      if (erasures_.empty()) return true;
      erasure = erasures_.front();
    }
    const absl::Status erased = parts_.files->EraseKind(erasure.kind);
    if (!erased.ok()) {
      Log(LogLevel::kError, "a kind of blocks cannot be erased from disk yet",
          {{"error", erased.message()}});
      absl::MutexLock hold(&mutex_);
      mutex_.AwaitWithTimeout(absl::Condition(&is_stopped_), kEraseAgain);
      continue;
    }
    {
      absl::MutexLock hold(&mutex_);
      erasures_.pop_front();
      ++erased_;
    }
    on_erased_();
    to_free_ += erasure.bytes;
    may_free_ = true;
    while (parts_.kept->SweepSome()) continue;
  }
}

// When no erased file is left, it also frees the bytes that were counted for
// files which were gone already.
void BlockStores::FreeSome() {
  const BlockFiles::Freed freed = parts_.files->FreeSome();
  may_free_ = freed.may_be_more;
  const uint64_t bytes =
      freed.is_all ? to_free_ : std::min(freed.bytes, to_free_);
  to_free_ -= bytes;
  parts_.kept->Freed(bytes);
}

// Takes in the blocks that were stored last, as far as there is room, and
// deletes the others.
void BlockStores::TakeStock() {
  // Files that an earlier process has erased do not count in this one; they are
  // deleted first.
  while (EraseAll() && may_free_) FreeSome();
  std::vector<BlockFiles::Found> found;
  parts_.files->TakeStock([&](const BlockFiles::Found& block) {
    found.push_back(block);
    return EraseAll();
  });
  std::stable_sort(
      found.begin(), found.end(),
      [](const auto& a, const auto& b) { return a.stored < b.stored; });
  const KeptBlocks::Totals totals = parts_.kept->totals();
  uint64_t room = totals.max_bytes;
  auto first = found.end();
  while (first != found.begin() && std::prev(first)->bytes <= room &&
         static_cast<uint64_t>(found.end() - first) < totals.max_blocks) {
    room -= (--first)->bytes;
  }
  for (auto it = found.begin(); it != found.end() && EraseAll(); ++it) {
    if (it >= first && parts_.kept->Restore(it->name, it->bytes)) continue;
    parts_.files->Erase(it->name).IgnoreError();
  }
  parts_.kept->EndStock();
  if (!found.empty()) {
    Log(LogLevel::kInfo, "blocks found on disk",
        {{"blocks", parts_.kept->totals().blocks}});
  }
}

std::vector<bool> BlockStores::Have(const Batch& batch) const {
  std::vector<bool> have;
  const std::span names(batch.names);
  for (size_t i = 0; i < names.size(); i += KeptBlocks::kMostNames) {
    const size_t count = std::min(KeptBlocks::kMostNames, names.size() - i);
    const auto some = parts_.kept->Have(*batch.kind, names.subspan(i, count));
    have.insert(have.end(), some.begin(), some.end());
  }
  return have;
}

void BlockStores::Touch(const Batch& batch) {
  std::vector<BlockName> names(batch.names.rbegin(), batch.names.rend());
  for (size_t i = 0; i < names.size(); i += KeptBlocks::kMostNames) {
    const size_t count = std::min(KeptBlocks::kMostNames, names.size() - i);
    parts_.kept->Touch(std::span(names).subspan(i, count));
  }
}

void BlockStores::StoreKeys(const KeysOfKind& keys, bool stores) {
  const std::shared_ptr<KnownKind> kind = parts_.kept->Find(keys.kind);
  if (kind == nullptr || !kind->is_newest) return;
  const size_t count = keys.keys.size() / kind->kind.key_bytes;
  Batch batch = {
      .kind = kind.get(), .keys = keys.keys, .names = {}, .indices = {}};
  batch.names.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    batch.names.push_back(kind->NameOf(kind->KeyOf(keys.keys, i)));
  }
  const std::vector<bool> have = Have(batch);
  Touch(batch);
  if (!stores) return;
  const uint64_t bytes = SealedBytes(kind->kind);
  const size_t most =
      std::clamp<size_t>(kBatchBytes / bytes, 1, kMostBatchBlocks);
  bool has_stored = false;
  for (uint32_t i = 0; i < count; ++i) {
    if (!have[i]) batch.indices.push_back(i);
    if (batch.indices.size() < most && i + 1 < count) continue;
    if (IsStopped()) return;
    if (batch.indices.empty()) continue;
    StoreBatch(batch);
    batch.indices.clear();
    has_stored = true;
  }
  if (has_stored) Touch(batch);
}

void BlockStores::StoreBatch(const Batch& batch) {
  const std::vector<BlockPlace> places = CopyOut(batch);
  const uint64_t bytes = SealedBytes(batch.kind->kind);
  for (size_t i = 0; i < batch.indices.size(); ++i) {
    if (i < places.size() && IsPlace(places[i])) {
      Write(batch, batch.indices[i],
            std::span(buffer_).subspan(i * bytes, bytes));
    } else {
      ++parts_.counts->dropped_blocks;
    }
  }
}

std::vector<BlockPlace> BlockStores::CopyOut(const Batch& batch) {
  std::string keys;
  for (uint32_t index : batch.indices) keys.append(batch.key(index));
  const BlockKeys wanted = {
      .kind = batch.kind->kind.number, .keys = keys, .before = {}};
  const BlockLockId lock(++last_lock_);
  const uint64_t bytes = SealedBytes(batch.kind->kind);
  buffer_.resize(batch.indices.size() * bytes);
  absl::StatusOr<std::vector<BlockPlace>> places = parts_.blocks->Acquire(
      {.session = parts_.session, .lock = lock, .keys = {&wanted, 1}});
  if (!places.ok()) return {};
  for (size_t i = 0; i < places->size(); ++i) {
    BlockPlace& place = (*places)[i];
    if (!IsPlace(place)) continue;
    const absl::Status copied = parts_.bytes->CopyOut(
        place,
        std::span(buffer_).subspan(i * bytes, bytes).subspan(kSealBytes));
    if (copied.ok()) continue;
    place = kMissingBlock;
    ++parts_.counts->failed_writes;
    Log(LogLevel::kError, "a block cannot be copied from the memory",
        {{"error", copied.message()}});
  }
  parts_.blocks->Release(parts_.session, {&lock, 1}).IgnoreError();
  return *std::move(places);
}

bool BlockStores::BeginStore(const KnownKind& kind, const BlockName& name,
                             uint64_t bytes) {
  // Erased files make room before any block is evicted.
  while (EraseAll() && to_free_ > 0 && may_free_ &&
         !parts_.kept->HasRoom(bytes)) {
    FreeSome();
  }
  auto begun = KeptBlocks::Begun::kAgain;
  while (begun == KeptBlocks::Begun::kAgain) {
    std::vector<BlockName> evicted;
    begun = parts_.kept->BeginStore(kind, name, bytes, evicted);
    for (const BlockName& gone : evicted) {
      const absl::Status erased = parts_.files->Erase(gone);
      if (erased.ok()) continue;
      Log(LogLevel::kError, "an evicted block is still on disk",
          {{"error", erased.message()}});
    }
  }
  return begun == KeptBlocks::Begun::kYes;
}

void BlockStores::Write(const Batch& batch, uint32_t index,
                        std::span<std::byte> value) {
  KnownKind& kind = *batch.kind;
  const BlockName& name = batch.names[index];
  if (!BeginStore(kind, name, BlockFiles::BytesOnDisk(value.size()))) return;
  SealBlock(kind.kind, batch.key(index), value);
  const absl::Status written = parts_.files->Write(name, value, index + 1);
  const bool is_kept = parts_.kept->EndStore(name, written.ok());
  if (!written.ok()) {
    ++parts_.counts->failed_writes;
    Log(LogLevel::kError, "a block cannot be stored",
        {{"error", written.message()}});
  }
  if (!is_kept) return;
  ++kind.stored;
  ++parts_.counts->stored_blocks;
  parts_.counts->stored_bytes += kind.kind.block_bytes;
}

}  // namespace pando
