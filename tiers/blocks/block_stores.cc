#include "tiers/blocks/block_stores.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "absl/time/time.h"
#include "os/logging/log.h"

namespace pando {
namespace {

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

void BlockStores::Note(StoreNote note) {
  const size_t blocks = StoreNotes::CountBlocks(note, *parts_.kept);
  absl::MutexLock hold(&mutex_);
  notes_.Add(std::move(note), blocks, *parts_.counts);
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
  std::deque<StoreNote> dropped;  // destroyed after the mutex: it takes long
  absl::MutexLock hold(&mutex_);
  dropped = notes_.Close();
}

void BlockStores::Run() {
  pthread_setname_np(pthread_self(), "block-store");
  TakeStock();
  while (EraseAll()) {
    StoreNote note;
    {
      absl::MutexLock hold(&mutex_);
      if (!may_free_)
        mutex_.Await(absl::Condition(this, &BlockStores::HasWork));
      if (is_stopped_) return;
      if (!notes_.empty()) {
        note = notes_.Take();
      } else if (!erasures_.empty()) {
        continue;
      }
    }
    if (note.keys == nullptr) {
      // Files of renewed kinds are deleted while there is nothing else to do.
      FreeSome();
      continue;
    }
    for (const KeysOfKind& keys : *note.keys) {
      if (!EraseAll()) return;
      StoreKeys(keys);
    }
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

void BlockStores::StoreKeys(const KeysOfKind& keys) {
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
  const uint64_t bytes = seal_.ValueBytes(kind->kind);
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
  const uint64_t bytes = seal_.ValueBytes(batch.kind->kind);
  buffer_.resize(batch.indices.size() * bytes);
  std::string keys;
  std::vector<std::span<std::byte>> values, blocks;
  for (uint32_t index : batch.indices) {
    keys.append(batch.key(index));
    values.push_back(std::span(buffer_).subspan(values.size() * bytes, bytes));
    blocks.push_back(values.back().subspan(seal_.bytes()));
  }
  const std::vector<bool> are_copied =
      parts_.copies->CopyOut(*batch.kind, keys, blocks, *parts_.counts);
  for (size_t i = 0; i < values.size(); ++i) {
    if (are_copied[i]) Write(batch, batch.indices[i], values[i]);
  }
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
  seal_.Seal(kind.kind, batch.key(index), value);
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
