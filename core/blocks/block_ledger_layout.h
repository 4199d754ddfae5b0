#ifndef PANDO_CORE_BLOCKS_BLOCK_LEDGER_LAYOUT_H_
#define PANDO_CORE_BLOCKS_BLOCK_LEDGER_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/ledger.h"
#include "core/requests/block_requests.h"

namespace pando {

// The layout of BlockLedger: a header, then the kinds, the extents, and for
// each extent the records of its blocks. Each of the four begins at a multiple
// of kLedgerPage. A process takes over only a ledger with its own
// kBlockLedgerMagic. So change kBlockLedgerMagic whenever the layout of
// anything in a ledger changes, BlockRecord included.
inline constexpr uint64_t kBlockLedgerMagic = 0x32'52'47'44'4c'42'44'50;

struct BlockLedgerHeader {
  LedgerStart start;
  uint64_t memory_bytes;
  uint64_t extent_bytes;
  uint64_t memory_id;
  uint32_t kind_cells;  // cells that were ever used
};
static_assert(sizeof(BlockLedgerHeader) <= kLedgerPage);
static_assert(LedgerText::kMaxBytes >= kMaxIdentityBytes &&
              LedgerText::kMaxBytes >= kMaxLabelBytes &&
              LedgerText::kMaxBytes >= kMaxNamespaceFieldBytes);

struct KindFacts {
  uint32_t number;  // 0: there is none
  uint32_t check;   // checksum of the number and all that follows
  uint32_t generation;
  uint32_t key_bytes;
  uint32_t shards;
  uint64_t shard_bytes;
  uint8_t is_bigram;
  LedgerText extra_key;
  LedgerText cache_salt;
  LedgerText identity;
  LedgerText label;
};

struct ExtentFacts {
  uint32_t kind;           // its number; 0: the extent is free
  uint32_t used_slots;     // slots from this one on have never been used
  uint32_t touched_bytes;  // of its records, that any kind has touched so far
  // A new block in this extent gets this generation. It changes (and wraps)
  // when the links to some block of the extent become bad.
  uint16_t generation;
};

}  // namespace pando

#endif  // PANDO_CORE_BLOCKS_BLOCK_LEDGER_LAYOUT_H_
