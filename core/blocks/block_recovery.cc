// The functions of BlockTable that take over what an earlier process left in
// the ledger.

#include <algorithm>
#include <vector>

#include "core/blocks/block_table.h"

namespace pando {

template <typename F>
void BlockTable::ForEachBlock(F&& visit) {
  for (uint32_t extent = 0; extent < memory_.extent_count(); ++extent) {
    if (memory_.extent(extent).kind == nullptr) continue;
    for (uint32_t slot = 0; slot < memory_.used_slots(extent); ++slot) {
      const BlockNumber block = memory_.NumberIn(extent, slot);
      if (At(block).block_state() != BlockState::kFree) visit(block);
    }
  }
}

void BlockTable::Recover() {
  kinds_.Recover();
  memory_.Recover([this](KindNumber number) { return kinds_.Find(number); });
  std::vector<BlockNumber> doubles;
  ForEachBlock([&](BlockNumber block) { RecoverBlock(block, doubles); });
  for (BlockNumber block : doubles) memory_.Free(block);
  ForEachBlock([this](BlockNumber block) {
    Kind& kind = *memory_.ExtentOf(block).kind;
    if (!kind.has_ended()) RecoverLink(kind, block);
  });
  RecoverLeaves();
}

void BlockTable::RecoverBlock(BlockNumber block,
                              std::vector<BlockNumber>& doubles) {
  Kind& kind = *memory_.ExtentOf(block).kind;
  BlockRecord& record = At(block);
  record.followers = 0;
  if (record.is_written()) {
    record.set_state(BlockState::kDetached);
    record.locks = 0;
    record.previous = kNoBlock;
    ++kind.written;
    Hold(block);
    earlier_.written.push_back(block);
    return;
  }
  if (!kind.has_ended()) {
    const std::string_view key = memory_.KeyOf(block);
    const uint64_t hash = HashOf(key);
    if (Find(kind, key, hash) != kNoBlock) {
      doubles.push_back(block);
      return;
    }
    kind.index->blocks.Add(hash, block);
  }
  use_ = std::max(use_, uint64_t{record.stamp});
  ++kind.ready;
  if (record.locks == 0) return;
  record.locks = 1;
  ++kind.locked;
  Hold(block);
  earlier_.locked.push_back(block);
}

void BlockTable::RecoverLink(Kind& kind, BlockNumber block) {
  BlockRecord& record = At(block);
  if (memory_.ExtentNumberOf(record.previous) >= memory_.extent_count()) {
    record.previous = kNoBlock;  // which is beyond the last extent, too
  }
  const BlockNumber previous = PreviousOf(kind, record);
  if (previous == kNoBlock || previous == block ||
      At(previous).block_state() != BlockState::kReady ||
      At(previous).followers == BlockRecord::kMaxCount) {
    record.previous = kNoBlock;
    return;
  }
  ++At(previous).followers;
}

void BlockTable::RecoverLeaves() {
  std::vector<Leaf> leaves;
  kinds_.ForEach([&](Kind& kind) {
    if (kind.has_ended()) return;
    leaves.clear();
    for (uint32_t extent : kind.extents) {
      for (uint32_t slot = 0; slot < memory_.used_slots(extent); ++slot) {
        const BlockNumber block = memory_.NumberIn(extent, slot);
        if (At(block).is_leaf()) leaves.push_back({At(block).stamp, block});
      }
    }
    std::ranges::sort(leaves);
    for (const Leaf& leaf : leaves) {
      kind.index->leaves.insert(kind.index->leaves.end(), leaf);
    }
  });
}

}  // namespace pando
