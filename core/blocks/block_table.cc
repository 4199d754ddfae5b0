#include "core/blocks/block_table.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace pando {
namespace {

// How many links Link follows back. If there are more, it makes no link.
constexpr uint32_t kMostLinks = 4'096;

}  // namespace

BlockTable::BlockTable(const BlockOptions& options)
    : ledger_(options),
      memory_(options, &ledger_),
      quotas_(options),
      kinds_(options.extent_bytes, &quotas_, &ledger_) {
  set_write_limit(options.write_limit);
  if (ledger_.is_of_before()) Recover();
}

void BlockTable::FindMany(const Kind& kind, std::string_view keys,
                          std::span<BlockNumber> found) const {
  const SteadyIndex& blocks = kind.index->blocks;
  const size_t key_bytes = kind.key_bytes();
  std::array<uint64_t, kManyKeys> hashes;
  for (size_t i = 0; i < found.size(); ++i) {
    hashes[i] = HashOf(keys.substr(i * key_bytes, key_bytes));
    blocks.Prefetch(hashes[i]);
  }
  // The first block with the hash is nearly always the right one; the last loop
  // checks that.
  for (size_t i = 0; i < found.size(); ++i) {
    found[i] = kNoBlock;
    blocks.Find(hashes[i], [&](BlockNumber block) {
      found[i] = block;
      return true;
    });
    if (found[i] != kNoBlock) memory_.Prefetch(found[i]);
  }
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i] == kNoBlock) continue;
    const std::string_view key = keys.substr(i * key_bytes, key_bytes);
    if (memory_.KeyOf(found[i]) != key) found[i] = Find(kind, key, hashes[i]);
  }
}

bool BlockTable::Touch(Kind& kind, BlockNumber block) {
  return Change(kind, block, [&](BlockRecord& r) { r.stamp = use_; });
}

bool BlockTable::Lock(Kind& kind, BlockNumber block) {
  if (At(block).locks == 0) {
    ++kind.locked;
    Hold(block);
  }
  return Change(kind, block, [&](BlockRecord& r) {
    ++r.locks;
    r.stamp = use_;
  });
}

bool BlockTable::Unlock(BlockNumber block) {
  Kind& kind = *memory_.ExtentOf(block).kind;
  const bool has_changed =
      Change(kind, block, [](BlockRecord& r) { --r.locks; });
  if (At(block).locks == 0) {
    --kind.locked;
    Unhold(block);
  }
  return has_changed;
}

void BlockTable::Pin(BlockNumber block) {
  if (At(block).locks == 0 && !At(block).is_written()) Hold(block);
  Change(*memory_.ExtentOf(block).kind, block,
         [](BlockRecord& r) { ++r.locks; });
}

void BlockTable::Unpin(BlockNumber block) {
  Change(*memory_.ExtentOf(block).kind, block,
         [](BlockRecord& r) { --r.locks; });
  if (At(block).locks == 0 && !At(block).is_written()) Unhold(block);
}

BlockNumber BlockTable::Reserve(Kind& kind, std::string_view key,
                                BlockNumber previous) {
  const BlockNumber block = memory_.Take(kind, key);
  BlockRecord& record = At(block);
  record.set_state(BlockState::kWritten);
  record.stamp = NowMillis();
  Hold(block);
  ++changes_;
  ++kind.written;
  ++kind.counters.reserved;
  kind.index->blocks.Add(HashOf(key), block);
  Link(kind, block, previous);
  return block;
}

uint32_t BlockTable::Link(Kind& kind, BlockNumber block, BlockNumber previous) {
  BlockRecord& record = At(block);
  uint32_t links = 0;
  // No block may follow a detached block, which may go at any time.
  if (previous == kNoBlock || previous == block ||
      PreviousOf(kind, record) != kNoBlock ||
      At(previous).block_state() == BlockState::kDetached ||
      At(previous).followers == BlockRecord::kMaxCount ||
      MayComeBefore(kind, block, previous, links)) {
    return links;
  }
  record.previous = previous;
  StoresBefore();  // the old generation does not fit the new block
  record.previous_generation = At(previous).generation;
  Change(kind, previous, [](BlockRecord& r) { ++r.followers; });
  return links;
}

// Blocks that follow each other in a circle would never become leaves.
bool BlockTable::MayComeBefore(const Kind& kind, BlockNumber block,
                               BlockNumber previous, uint32_t& links) const {
  if (At(block).followers == 0) return false;
  while (links < kMostLinks) {
    ++links;
    previous = PreviousOf(kind, At(previous));
    if (previous == kNoBlock) return false;
    if (previous == block) return true;
  }
  return true;
}

BlockNumber BlockTable::PreviousOf(const Kind& kind,
                                   const BlockRecord& record) const {
  if (record.previous == kNoBlock) return kNoBlock;
  const Extent& extent = memory_.ExtentOf(record.previous);
  if (extent.kind != &kind || !memory_.IsUsed(record.previous)) return kNoBlock;
  return At(record.previous).generation == record.previous_generation
             ? record.previous
             : kNoBlock;
}

bool BlockTable::Publish(BlockNumber block) {
  Kind& kind = *memory_.ExtentOf(block).kind;
  --kind.written;
  if (!MakeFindable(kind, block)) {
    ++kind.counters.duplicates;
    Free(kind, block);
    return false;
  }
  ++kind.ready;
  ++kind.counters.published;
  Change(kind, block, [&](BlockRecord& r) {
    r.stamp = use_;
    StoresBefore();
    r.set_state(BlockState::kReady);
  });
  Unhold(block);
  return true;
}

bool BlockTable::MakeFindable(Kind& kind, BlockNumber block) {
  if (kind.has_ended()) return false;
  if (At(block).block_state() == BlockState::kWritten) return true;
  const std::string_view key = memory_.KeyOf(block);
  const uint64_t hash = HashOf(key);
  const BlockNumber other = Find(kind, key, hash);
  if (other == kNoBlock) {
    kind.index->blocks.Add(hash, block);
    return true;
  }
  if (At(other).block_state() == BlockState::kReady) return false;
  // The other block was reserved later and is not published yet.
  kind.index->blocks.Replace(hash, other, block);
  At(other).set_state(BlockState::kDetached);
  Unlink(kind, other);
  return true;
}

void BlockTable::Reattach(BlockNumber block) {
  Kind& kind = *memory_.ExtentOf(block).kind;
  BlockRecord& record = At(block);
  if (record.block_state() != BlockState::kDetached) return;
  if (!MakeFindable(kind, block)) return;
  ++changes_;
  record.stamp = NowMillis();
  record.set_state(BlockState::kWritten);
}

void BlockTable::Discard(BlockNumber block) {
  Kind& kind = *memory_.ExtentOf(block).kind;
  Detach(block);
  --kind.written;
  ++kind.counters.discarded;
  Free(kind, block);
}

void BlockTable::PrefetchEnd(BlockNumber block, bool is_published) const {
  const Kind& kind = *memory_.ExtentOf(block).kind;
  const bool is_found = At(block).block_state() == BlockState::kWritten;
  if (is_found == is_published || kind.has_ended()) return;
  kind.index->blocks.Prefetch(HashOf(memory_.KeyOf(block)));
}

void BlockTable::Detach(BlockNumber block) {
  Kind& kind = *memory_.ExtentOf(block).kind;
  BlockRecord& record = At(block);
  if (record.block_state() != BlockState::kWritten || kind.has_ended()) return;
  record.set_state(BlockState::kDetached);
  Forget(kind, block);
}

void BlockTable::Forget(Kind& kind, BlockNumber block) {
  kind.index->blocks.Remove(HashOf(memory_.KeyOf(block)), block);
  Unlink(kind, block);
}

void BlockTable::Unlink(Kind& kind, BlockNumber block) {
  ++changes_;
  BlockRecord& record = At(block);
  if (const BlockNumber previous = PreviousOf(kind, record);
      previous != kNoBlock) {
    Change(kind, previous, [](BlockRecord& r) { --r.followers; });
  }
  record.previous = kNoBlock;
  if (record.followers == 0) return;
  // A new generation makes all links to the block bad.
  record.followers = 0;
  record.generation = memory_.NextGeneration(memory_.ExtentNumberOf(block));
}

void BlockTable::Unhold(BlockNumber block) {
  Extent& extent = memory_.ExtentOf(block);
  if (--extent.held == 0 && extent.kind->has_ended()) {
    FreeEndedExtent(memory_.ExtentNumberOf(block));
  }
}

void BlockTable::Free(Kind& kind, BlockNumber block) {
  ++changes_;
  Extent& extent = memory_.ExtentOf(block);
  --extent.held;
  memory_.Free(block);
  if (extent.kind == &kind && extent.held == 0 && kind.has_ended()) {
    FreeEndedExtent(memory_.ExtentNumberOf(block));
  }
}

void BlockTable::FreeEndedExtent(uint32_t number) {
  ++changes_;
  const Extent& extent = memory_.extent(number);
  Kind& kind = *extent.kind;
  kind.ready -= extent.blocks;
  kind.counters.evicted[static_cast<size_t>(BlockEviction::kReset)] +=
      extent.blocks;
  memory_.FreeExtent(number);
}

bool BlockTable::FreeEnded(uint32_t& work) {
  while (work > 0) {
    Kind* const kind = kinds_.NextEnded();
    if (kind == nullptr) return false;
    // An extent that is still held is freed by Unhold or Free later.
    bool has_more = false;
    for (size_t i = kind->extents.size(); i-- > 0;) {
      const uint32_t extent = kind->extents[i];
      if (memory_.extent(extent).held > 0) continue;
      if (work == 0) {
        has_more = true;
        break;
      }
      --work;
      FreeEndedExtent(extent);
    }
    if (has_more) return true;
    kinds_.DropEnded();
    work -= std::min(work, 1u);
  }
  return kinds_.NextEnded() != nullptr;
}

uint64_t BlockTable::index_bytes() const {
  uint64_t bytes = memory_.record_bytes();
  kinds_.ForEach([&](const Kind& kind) {
    if (kind.has_ended()) return;
    bytes += kind.index->blocks.bytes();
    bytes += kind.index->leaves.size() * sizeof(Leaf);
  });
  return bytes;
}

}  // namespace pando
