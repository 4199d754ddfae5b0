#ifndef PANDO_CORE_NODES_SEGMENT_ARENA_H_
#define PANDO_CORE_NODES_SEGMENT_ARENA_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/btree_map.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"

namespace pando {

// Memory for segments that may outlive the process, in cells that the next
// process finds again. The memory is cut into chunks. Small cells share a chunk
// with others of their size; a large cell has several chunks for itself. A
// table, which is in memory of the ledger as well, says for each chunk which
// cells it has. All else is computed from the table when the process starts.
//
// Owned by PageLedger. Thread-safe, because any thread may release the last
// reference to a segment.
//
// Invariant: each cell that the table shows begins with an object that was
// allocated there, or with the 4 zero bytes that Allocate and Free write. So no
// other bytes are taken for the beginning of an object.
class SegmentArena {
 public:
  static constexpr size_t kChunkBytes = 65'536;

  // `table` has one entry for each chunk of `memory`. Both are all zero, or of
  // an earlier process; then Recover must be called before Allocate.
  SegmentArena(std::span<uint32_t> table, std::span<std::byte> memory);
  SegmentArena(const SegmentArena&) = delete;
  SegmentArena& operator=(const SegmentArena&) = delete;

  // Returns memory of at least `bytes` bytes, aligned to 16, whose first 4
  // bytes are zero. Null if there is no room.
  std::byte* Allocate(size_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  void Free(std::byte* cell) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the offset of a cell, which is the same for the next process.
  uint64_t OffsetOf(const std::byte* cell) const {
    return static_cast<uint64_t>(cell - memory_.data());
  }
  // From now on Free does nothing: the process ends, and leaves all objects to
  // the next one.
  void LeaveAll() { leaves_all_ = true; }

  // Calls `is_used` for each cell of the table, and frees those for which it
  // returns false.
  using IsUsed = absl::FunctionRef<bool(std::byte* cell, size_t bytes)>;
  void Recover(IsUsed is_used) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Sizes of small cells: eight in each doubling.
  static constexpr size_t kMinCellBytes = 128;
  static constexpr size_t kMaxCellBytes = 32'768;
  static constexpr uint32_t kSizes = 8 * 8 + 1;
  static constexpr uint32_t kMaxCells = kChunkBytes / kMinCellBytes;

  // The facts of a chunk with small cells that the table does not have.
  struct Chunk {
    uint32_t used = 0;                               // cells
    uint32_t place = 0;                              // in with_room_, if listed
    std::array<uint64_t, kMaxCells / 64> is_used{};  // a bit for each cell
  };

  // Entries that no process can have written are damaged.
  void DropBadEntries();
  static uint32_t SizeFor(size_t bytes);
  static size_t BytesOf(uint32_t size);

  uint32_t chunk_count() const { return static_cast<uint32_t>(table_.size()); }
  std::byte* CellAt(uint32_t chunk, size_t offset) const {
    return memory_.data() + chunk * kChunkBytes + offset;
  }
  std::byte* AllocateSmall(uint32_t size) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::byte* AllocateLarge(uint32_t chunks)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes `chunks` chunks in a row that are free; chunk_count() if there are
  // none.
  uint32_t TakeChunks(uint32_t chunks) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void GiveChunks(uint32_t first, uint32_t chunks)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void List(uint32_t chunk, uint32_t size)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Unlist(uint32_t chunk, uint32_t size)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RecoverChunk(uint32_t chunk, IsUsed is_used)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::atomic<bool> leaves_all_ = false;
  const std::span<uint32_t> table_;
  const std::span<std::byte> memory_;
  absl::Mutex mutex_;
  std::vector<Chunk> chunks_ ABSL_GUARDED_BY(mutex_);
  // For each size, the chunks that have a free cell of it.
  std::array<std::vector<uint32_t>, kSizes> with_room_ ABSL_GUARDED_BY(mutex_);
  // The free chunks: the first one of each run, and how many there are.
  absl::btree_map<uint32_t, uint32_t> free_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pando

#endif  // PANDO_CORE_NODES_SEGMENT_ARENA_H_
