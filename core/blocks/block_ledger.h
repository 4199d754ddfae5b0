#ifndef PANDO_CORE_BLOCKS_BLOCK_LEDGER_H_
#define PANDO_CORE_BLOCKS_BLOCK_LEDGER_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/blocks/block_ledger_layout.h"
#include "core/requests/block_requests.h"

namespace pando {

// The ledger of blocks, extents and kinds (base/ledger.h), which is the
// only place of the records of blocks. BlockTable::Recover builds the indexes.
//
// The facts that make others valid are the number of a kind, the kind of an
// extent, the number of its used slots, and the state of a block. If a block is
// ready, its key and its bytes are right. The rest of its record may be
// slightly out of date, which at worst misplaces it in the order of eviction.
//
// Owned by BlockTable; not thread-safe.
class BlockLedger {
 public:
  // The bytes of memory that a ledger needs. Most of them are never touched:
  // the kernel only backs the records of extents that were used.
  static uint64_t BytesFor(const BlockOptions& options);
  // Whether options.ledger contains a ledger that an earlier process completed
  // (Complete) for the same block memory and in this layout.
  static bool IsOf(const BlockOptions& options);
  // Marks the ledger as complete: from now on the next process may take it
  // over. A new ledger does not know which blocks workers of earlier processes
  // may still use, so its maker reserves those blocks first.
  static void Complete(std::span<std::byte> ledger);

  // If options.ledger is empty, the ledger allocates its own memory. REQUIRES:
  // otherwise options.ledger has BytesFor bytes, which are all zero or for
  // which IsOf is true.
  explicit BlockLedger(const BlockOptions& options);
  BlockLedger(const BlockLedger&) = delete;
  BlockLedger& operator=(const BlockLedger&) = delete;

  // Whether it took over the ledger of an earlier process.
  bool is_of_before() const { return is_of_before_; }
  // How many processes have taken this ledger over.
  uint64_t recoveries() const { return header_->start.recoveries; }

  ExtentFacts& extent(uint32_t number) const { return extents_[number]; }
  // Where the records of an extent are. They do not move when another kind gets
  // the extent.
  std::byte* records(uint32_t extent) const {
    return records_ + records_bytes_ * extent;
  }

  // Writes down a kind and returns the cell that contains it. REQUIRES: fewer
  // than kMaxKinds are written down.
  uint32_t AddKind(const BlockKind& kind);
  void RemoveKind(uint32_t cell);
  // The number of cells, and the kind in a cell, or none. The kind may be one
  // of an earlier process. Its shard_stride is not set.
  uint32_t kind_cells() const { return header_->kind_cells; }
  std::optional<BlockKind> KindIn(uint32_t cell) const;

 private:
  struct Freeing {
    void operator()(void* memory) const { std::free(memory); }
  };
  std::unique_ptr<void, Freeing> own_;
  BlockLedgerHeader* header_ = nullptr;
  KindFacts* kinds_ = nullptr;
  ExtentFacts* extents_ = nullptr;
  std::byte* records_ = nullptr;
  // The bytes of records of one extent.
  uint64_t records_bytes_ = 0;
  bool is_of_before_ = false;
  std::vector<uint32_t> free_cells_;
};

}  // namespace pando

#endif  // PANDO_CORE_BLOCKS_BLOCK_LEDGER_H_
