#include "core/nodes/segment_arena.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>

#include "base/check.h"
#include "base/ledger.h"

namespace pando {
namespace {

// An entry of the table is 0 if the chunk is free or belongs to the large cell
// that begins in a chunk before it. The entry of a chunk with small cells has
// their size and how many of them were ever used; the entry of the first chunk
// of a large cell has the number of its chunks.
constexpr uint32_t kLarge = 1u << 31;
constexpr uint32_t kCellsBits = 16;

uint32_t SmallEntry(uint32_t size, uint32_t cells) {
  return (size + 1) << kCellsBits | cells;
}
bool IsLarge(uint32_t entry) { return (entry & kLarge) != 0; }
uint32_t ChunksOf(uint32_t entry) { return entry & ~kLarge; }
uint32_t SizeOf(uint32_t entry) { return (entry >> kCellsBits) - 1; }
uint32_t CellsOf(uint32_t entry) { return entry & ((1u << kCellsBits) - 1); }

// Nothing of an earlier object may be taken for a new one.
void Clear(std::byte* cell) {
  std::memset(cell, 0, sizeof(uint32_t));
  StoresBefore();
}

}  // namespace

SegmentArena::SegmentArena(std::span<uint32_t> table,
                           std::span<std::byte> memory)
    : table_(table), memory_(memory), chunks_(table.size()) {
  CHECK(memory.size() == table.size() * kChunkBytes);
  CHECK(table.size() < kLarge);
  DropBadEntries();
  if (!table.empty()) free_[0] = chunk_count();
}

void SegmentArena::DropBadEntries() {
  for (uint32_t chunk = 0; chunk < chunk_count();) {
    uint32_t& entry = table_[chunk];
    const bool is_good =
        IsLarge(entry)
            ? ChunksOf(entry) > 0 && ChunksOf(entry) <= chunk_count() - chunk
            : entry >> kCellsBits <= kSizes &&
                  (entry >> kCellsBits > 0
                       ? CellsOf(entry) <= kChunkBytes / BytesOf(SizeOf(entry))
                       : entry == 0);
    if (!is_good) entry = 0;
    const uint32_t chunks = IsLarge(entry) ? ChunksOf(entry) : 1;
    for (uint32_t& other : table_.subspan(chunk + 1, chunks - 1)) other = 0;
    chunk += chunks;
  }
}

// Size 8 * d + s is that of (8 + s) / 8 * 2^d * kMinCellBytes.
size_t SegmentArena::BytesOf(uint32_t size) {
  return (8 + size % 8) * (kMinCellBytes / 8) << size / 8;
}

uint32_t SegmentArena::SizeFor(size_t bytes) {
  if (bytes <= kMinCellBytes) return 0;
  const auto doublings =
      static_cast<uint32_t>(std::bit_width((bytes - 1) / kMinCellBytes) - 1);
  const size_t step = kMinCellBytes / 8 << doublings;
  return doublings * 8 + static_cast<uint32_t>((bytes + step - 1) / step) - 8;
}

std::byte* SegmentArena::Allocate(size_t bytes) {
  const absl::MutexLock lock(&mutex_);
  if (bytes <= kMaxCellBytes) return AllocateSmall(SizeFor(bytes));
  const size_t chunks = (bytes + kChunkBytes - 1) / kChunkBytes;
  if (chunks > table_.size()) return nullptr;
  return AllocateLarge(static_cast<uint32_t>(chunks));
}

std::byte* SegmentArena::AllocateSmall(uint32_t size) {
  if (with_room_[size].empty()) {
    const uint32_t taken = TakeChunks(1);
    if (taken == chunk_count()) {
      // A larger cell is better than none.
      while (size < kSizes && with_room_[size].empty()) ++size;
      if (size == kSizes) return nullptr;
    } else {
      chunks_[taken] = Chunk();
      table_[taken] = SmallEntry(size, 0);
      List(taken, size);
    }
  }
  const uint32_t number = with_room_[size].back();
  Chunk& chunk = chunks_[number];
  uint32_t word = 0;
  while (~chunk.is_used[word] == 0) ++word;
  const auto bit = static_cast<uint32_t>(std::countr_one(chunk.is_used[word]));
  const uint32_t cell = word * 64 + bit;
  chunk.is_used[word] |= uint64_t{1} << bit;
  const auto cells = static_cast<uint32_t>(kChunkBytes / BytesOf(size));
  if (++chunk.used == cells) Unlist(number, size);
  std::byte* const memory = CellAt(number, cell * BytesOf(size));
  Clear(memory);
  if (cell >= CellsOf(table_[number])) {
    table_[number] = SmallEntry(size, cell + 1);
  }
  return memory;
}

std::byte* SegmentArena::AllocateLarge(uint32_t chunks) {
  const uint32_t first = TakeChunks(chunks);
  if (first == chunk_count()) return nullptr;
  std::byte* const memory = CellAt(first, 0);
  Clear(memory);
  table_[first] = kLarge | chunks;
  return memory;
}

void SegmentArena::Free(std::byte* cell) {
  if (leaves_all_) return;
  Clear(cell);
  const absl::MutexLock lock(&mutex_);
  const auto offset = static_cast<size_t>(cell - memory_.data());
  const auto number = static_cast<uint32_t>(offset / kChunkBytes);
  const uint32_t entry = table_[number];
  if (IsLarge(entry)) {
    table_[number] = 0;
    GiveChunks(number, ChunksOf(entry));
    return;
  }
  const uint32_t size = SizeOf(entry);
  const size_t index = offset % kChunkBytes / BytesOf(size);
  Chunk& chunk = chunks_[number];
  chunk.is_used[index / 64] &= ~(uint64_t{1} << index % 64);
  const auto cells = static_cast<uint32_t>(kChunkBytes / BytesOf(size));
  if (chunk.used-- == cells) List(number, size);
  if (chunk.used > 0) return;
  Unlist(number, size);
  table_[number] = 0;
  GiveChunks(number, 1);
}

// The first run that is long enough, so that free chunks gather at the end.
uint32_t SegmentArena::TakeChunks(uint32_t chunks) {
  const auto run = std::ranges::find_if(
      free_, [chunks](const auto& each) { return each.second >= chunks; });
  if (run == free_.end()) return chunk_count();
  const auto [first, length] = *run;
  free_.erase(run);
  if (length > chunks) free_[first + chunks] = length - chunks;
  return first;
}

void SegmentArena::GiveChunks(uint32_t first, uint32_t chunks) {
  auto after = free_.lower_bound(first);
  if (after != free_.end() && after->first == first + chunks) {
    chunks += after->second;
    after = free_.erase(after);
  }
  if (after != free_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == first) {
      before->second += chunks;
      return;
    }
  }
  free_[first] = chunks;
}

void SegmentArena::List(uint32_t chunk, uint32_t size) {
  chunks_[chunk].place = static_cast<uint32_t>(with_room_[size].size());
  with_room_[size].push_back(chunk);
}

void SegmentArena::Unlist(uint32_t chunk, uint32_t size) {
  std::vector<uint32_t>& listed = with_room_[size];
  listed[chunks_[chunk].place] = listed.back();
  chunks_[listed.back()].place = chunks_[chunk].place;
  listed.pop_back();
}

void SegmentArena::Recover(IsUsed is_used) {
  const absl::MutexLock lock(&mutex_);
  free_.clear();
  for (uint32_t chunk = 0; chunk < chunk_count();) {
    const uint32_t entry = table_[chunk];
    RecoverChunk(chunk, is_used);
    chunk += IsLarge(entry) ? ChunksOf(entry) : 1;
  }
}

void SegmentArena::RecoverChunk(uint32_t chunk, IsUsed is_used) {
  const uint32_t entry = table_[chunk];
  if (entry == 0) return GiveChunks(chunk, 1);
  if (IsLarge(entry)) {
    if (is_used(CellAt(chunk, 0), ChunksOf(entry) * kChunkBytes)) return;
    Clear(CellAt(chunk, 0));
    table_[chunk] = 0;
    return GiveChunks(chunk, ChunksOf(entry));
  }
  const uint32_t size = SizeOf(entry);
  const size_t bytes = BytesOf(size);
  Chunk& known = chunks_[chunk];
  for (uint32_t cell = 0; cell < CellsOf(entry); ++cell) {
    if (!is_used(CellAt(chunk, cell * bytes), bytes)) {
      Clear(CellAt(chunk, cell * bytes));
      continue;
    }
    known.is_used[cell / 64] |= uint64_t{1} << cell % 64;
    ++known.used;
  }
  if (known.used == 0) {
    table_[chunk] = 0;
    return GiveChunks(chunk, 1);
  }
  if (known.used < kChunkBytes / bytes) List(chunk, size);
}

}  // namespace pando
