#include "core/operators/earlier_blocks.h"

#include <algorithm>
#include <cstdint>
#include <span>

namespace pando {
namespace {

void Give(CacheParts& parts, BlockOwner& owner, bool is_reservation,
          std::span<const BlockNumber> blocks) {
  for (uint64_t id = 1; !blocks.empty(); ++id) {
    // A hold gets no more blocks than a call may name, so that later steps over
    // it are not longer.
    const auto some = blocks.first(std::min(blocks.size(), kMaxBlockKeys));
    blocks = blocks.subspan(some.size());
    BlockHold& hold = parts.block_holds.Add(
        owner, {.is_reservation = is_reservation, .id = id}, some.size());
    for (BlockNumber block : some) {
      parts.block_holds.Append(hold, parts.blocks.memory().PlaceOf(block));
    }
  }
}

}  // namespace

bool EarlierBlocks::Step(CacheParts& parts) {
  const absl::StatusOr<Session*> session = parts.sessions.Get(session_);
  if (!session.ok()) return true;
  const auto [locked, written] = parts.blocks.TakeEarlier();
  BlockOwner& owner = *(*session)->blocks;
  Give(parts, owner, /*is_reservation=*/false, locked);
  Give(parts, owner, /*is_reservation=*/true, written);
  parts.sessions.CountBlockBytes(**session);
  count_ = locked.size() + written.size();
  parts.blocks.kinds().ForEach([this](const Kind& kind) {
    if (!kind.has_ended()) ready_ += kind.ready;
  });
  return true;
}

}  // namespace pando
