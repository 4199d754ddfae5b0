#include "core/block_calls/block_reserve.h"

#include <algorithm>

#include "base/status_macros.h"

namespace pando {

absl::Status BlockReserve::Answer(Context& context, const OpenKeys& keys) {
  const BlockTable& blocks = context.parts.blocks;
  BlockNumber previous = kNoBlock;
  if (next_key() > 0) {
    previous = blocks.Find(*keys.kind, keys.key(next_key() - 1));
  } else if (!keys.keys->before.empty()) {
    previous = blocks.Find(*keys.kind, keys.keys->before);
  }
  while (next_key() < keys.count && context.work > 0) {
    ASSIGN_OR_RETURN(previous, AnswerNext(context, keys, previous));
  }
  return absl::OkStatus();
}

bool BlockReserve::Suffices(BlockShape,
                            std::span<const BlockPlace> answers) const {
  return std::find(answers.begin(), answers.end(), kNoRoomForBlock) ==
         answers.end();
}

absl::StatusOr<BlockNumber> BlockReserve::AnswerNext(Context& context,
                                                     const OpenKeys& keys,
                                                     BlockNumber previous) {
  BlockTable& blocks = context.parts.blocks;
  Kind& kind = *keys.kind;
  const std::string_view key = keys.key(next_key());
  TakeWork(context, 1);
  const BlockNumber block = blocks.Find(kind, key);
  if (block != kNoBlock) {
    const BlockRecord& record = blocks.At(block);
    if (!blocks.IsOverdue(record)) {
      const bool is_ready = record.block_state() == BlockState::kReady;
      TakeWork(context, blocks.Link(kind, block, previous) / kLinksOfAKey);
      if (is_ready && blocks.Touch(kind, block)) TakeWork(context, kLeafWork);
      Append(context, is_ready ? kReadyBlock : kPendingBlock);
      return block;
    }
    blocks.Detach(block);
    ++kind.counters.overdue;
  }
  RETURN_IF_ERROR(
      context.parts.sessions.CheckMoreReservedBlocks(context.session));
  if (!MakeRoom(context, kind, previous)) {
    ++kind.counters.no_room;
    Append(context, kNoRoomForBlock);
    return kNoBlock;
  }
  const BlockNumber reserved = blocks.Reserve(kind, key, previous);
  Append(context, blocks.memory().PlaceOf(reserved));
  return reserved;
}

bool BlockReserve::MakeRoom(Context& context, Kind& kind,
                            BlockNumber previous) {
  BlockTable& blocks = context.parts.blocks;
  if (blocks.memory().HasRoom(kind)) return true;
  if (full_ == &kind) return false;
  const uint64_t evictions = blocks.evictions();
  const uint64_t looks = blocks.looks();
  if (previous != kNoBlock) blocks.Pin(previous);
  const bool has_room = blocks.MakeRoom(kind);
  if (previous != kNoBlock) blocks.Unpin(previous);
  const uint64_t evicted = blocks.evictions() - evictions;
  TakeWork(context, static_cast<uint32_t>(
                        kEvictionWork + std::min<uint64_t>(evicted, kStepKeys) +
                        (blocks.looks() - looks) / kLooksOfAKey));
  if (!has_room) full_ = &kind;
  return has_room;
}

}  // namespace pando
