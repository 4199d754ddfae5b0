#ifndef PANDO_CORE_BLOCKS_KIND_H_
#define PANDO_CORE_BLOCKS_KIND_H_

#include <compare>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/btree_set.h"
#include "core/blocks/block_quotas.h"
#include "core/blocks/block_record.h"
#include "core/nodes/steady_index.h"
#include "core/requests/block_requests.h"

namespace pando {

// A block that may be evicted. Leaves are ordered as they are evicted: by the
// stamp of their last use.
struct Leaf {
  uint64_t stamp = 0;
  BlockNumber block = kNoBlock;

  friend auto operator<=>(const Leaf&, const Leaf&) = default;
};

// Finds the blocks of a kind by their keys, and the leaf to evict next.
struct KindIndex {
  SteadyIndex blocks;
  absl::btree_set<Leaf> leaves;
};

// One generation of a kind, with its extents and counts. Plain data, owned by
// KindTable; BlockMemory and BlockTable change the members that are marked as
// theirs.
struct Kind {
  BlockKind info;
  uint32_t ledger_cell = 0;
  bool is_newest = true;  // of its name
  // In the newest generation: how many older ones still exist.
  uint32_t older_kinds = 0;
  uint32_t open_sessions = 0;
  // Null once the kind has ended: no call finds its blocks then, and each of
  // its extents is freed as soon as no session reads or writes there.
  std::unique_ptr<KindIndex> index = std::make_unique<KindIndex>();
  QuotaShare* share = nullptr;  // never null in KindTable

  // Changed by BlockMemory. The two vectors contain numbers of extents.
  uint32_t slots = 0;               // blocks of an extent
  uint32_t block_places = 0;        // size of a block, in units of kPlaceBytes
  uint32_t record_bytes = 0;        // a record with its key
  std::vector<uint32_t> extents;    // all
  std::vector<uint32_t> with_room;  // those with a free slot

  // Changed by BlockTable: the number of blocks in each state, and how many
  // leaves of this kind it evicts before it looks again for a colder kind.
  uint64_t ready = 0;
  uint64_t locked = 0;
  uint64_t written = 0;
  uint32_t evictions_before_look = 0;
  KindCounters counters;

  bool has_ended() const { return index == nullptr; }
  uint32_t key_bytes() const { return info.spec.key_bytes; }
  uint64_t block_bytes() const { return block_places * kPlaceBytes; }
};

}  // namespace pando

#endif  // PANDO_CORE_BLOCKS_KIND_H_
