#include "core/operators/earlier_blocks.h"

#include <span>

namespace pando {
namespace {

void Give(CacheParts& parts, BlockOwner& owner, bool is_reservation,
          std::span<const BlockNumber> blocks) {
  if (blocks.empty()) return;
  BlockHold& hold = parts.block_holds.Add(
      owner, {.is_reservation = is_reservation, .id = 1}, blocks.size());
  for (BlockNumber block : blocks) {
    parts.block_holds.Append(hold, parts.blocks.memory().PlaceOf(block));
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
  parts.blocks.kinds().ForEach([this](const Kind& k) { ready_ += k.ready; });
  return true;
}

}  // namespace pando
