#ifndef PANDO_CORE_BLOCKS_BLOCK_LEDGER_H_
#define PANDO_CORE_BLOCKS_BLOCK_LEDGER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/blocks/ledger_layout.h"
#include "core/requests/block_requests.h"

namespace pando {

// The plain facts about blocks, extents and kinds: no pointers, and nothing
// that can be computed from the rest. The records of blocks are here and
// nowhere else. If this memory outlives the process, so do the blocks: the next
// process makes its indexes from these facts (BlockTable::Recover).
//
// The process may end between any two stores. So a fact that makes others count
// is stored after them, and taken back before they change: the number of a
// kind, the kind of an extent, the slots that it has used, the state of a
// block. StoresBefore keeps the compiler to that. A block that is ready has its
// key and its bytes; all else about it may be as it was shortly before, which
// costs at most its place in the order of eviction.
//
// Owned by BlockTable; not thread-safe.
class BlockLedger {
 public:
  // The memory that it needs. Most is never touched: the kernel gives pages
  // for the records of extents that were used.
  static uint64_t BytesFor(const BlockOptions& options);
  // Whether options.ledger has what a process before has left of the same
  // memory, in this layout: the process called Complete.
  static bool IsOf(const BlockOptions& options);
  // From now on the next process may take the ledger over. A new ledger knows
  // of no block that workers may still use, so its maker reserves these first.
  static void Complete(std::span<std::byte> ledger);

  // REQUIRES: options.ledger is empty, and then the ledger has memory of its
  // own; or has BytesFor bytes that are zeros, or of which IsOf is true.
  explicit BlockLedger(const BlockOptions& options);
  BlockLedger(const BlockLedger&) = delete;
  BlockLedger& operator=(const BlockLedger&) = delete;

  bool is_of_before() const { return is_of_before_; }
  uint64_t recoveries() const { return header_->recoveries; }

  ExtentFacts& extent(uint32_t number) const { return extents_[number]; }
  // Where the records of an extent are. They stay there, whatever kind has it.
  std::byte* records(uint32_t extent) const {
    return records_ + records_bytes_ * extent;
  }

  // Notes a kind, and returns the cell that has it. REQUIRES: fewer than
  // kMaxKinds are noted.
  uint32_t AddKind(const BlockKind& kind);
  void RemoveKind(uint32_t cell);
  // The number of cells, and the kind that one has, also of the process before;
  // without its stride.
  uint32_t kind_cells() const { return header_->kind_cells; }
  std::optional<BlockKind> KindIn(uint32_t cell) const;

  // All stores before it come before those after it.
  static void StoresBefore() {
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }

 private:
  struct Freeing {
    void operator()(void* memory) const { std::free(memory); }
  };
  std::unique_ptr<void, Freeing> own_;
  LedgerHeader* header_ = nullptr;
  KindFacts* kinds_ = nullptr;
  ExtentFacts* extents_ = nullptr;
  std::byte* records_ = nullptr;
  uint64_t records_bytes_ = 0;  // of an extent
  bool is_of_before_ = false;
  std::vector<uint32_t> free_cells_;
};

}  // namespace pando

#endif  // PANDO_CORE_BLOCKS_BLOCK_LEDGER_H_
