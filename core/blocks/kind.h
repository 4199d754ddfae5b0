#ifndef PANDO_CORE_BLOCKS_KIND_H_
#define PANDO_CORE_BLOCKS_KIND_H_

#include <compare>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/btree_set.h"
#include "core/blocks/block_record.h"
#include "core/nodes/steady_index.h"
#include "core/requests/block_requests.h"

namespace pando {

// A block that may be evicted, in the order in which that happens.
struct Leaf {
  uint64_t stamp = 0;
  BlockNumber block = kNoBlock;

  friend auto operator<=>(const Leaf&, const Leaf&) = default;
};

// How the blocks of a kind are found: by their keys, and the next to evict.
struct KindIndex {
  SteadyIndex blocks;
  absl::btree_set<Leaf> leaves;
};

// One generation of a kind, and what it has. Plain data, owned by KindTable;
// BlockMemory and BlockTable change what is theirs.
struct Kind {
  BlockKind info;
  uint32_t ledger_cell = 0;
  bool is_newest = true;     // of its name
  uint32_t older_kinds = 0;  // with the newest: generations that are there
  uint32_t open_sessions = 0;
  // It is null once it has ended: its blocks are not found and its extents go
  // as soon as no session reads or writes there.
  std::unique_ptr<KindIndex> index = std::make_unique<KindIndex>();

  // BlockMemory: numbers of extents.
  uint32_t slots = 0;               // blocks of an extent
  uint32_t block_places = 0;        // units of kPlaceBytes
  uint32_t record_bytes = 0;        // a record with its key
  std::vector<uint32_t> extents;    // all
  std::vector<uint32_t> with_room;  // those with a free slot

  // BlockTable: blocks in these states; and how many times it evicts before it
  // looks again whether another kind is colder.
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
