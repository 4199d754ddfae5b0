#ifndef PANDO_TIERS_BLOCKS_BLOCK_COPIES_H_
#define PANDO_TIERS_BLOCKS_BLOCK_COPIES_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/ids.h"
#include "base/unique_fd.h"
#include "core/block_cache.h"
#include "tiers/blocks/block_tier_figures.h"
#include "tiers/blocks/kept_blocks.h"

namespace pando {

// Copies blocks between the block memory and buffers, in the session of the
// block tier. It uses the descriptor of the memory, because this process does
// not map it. Owned by BlockTier; thread-safe.
class BlockCopies {
 public:
  // `blocks` must outlive this object.
  BlockCopies(BlockCache* blocks, SessionId session, UniqueFd memory)
      : blocks_(blocks), session_(session), memory_(std::move(memory)) {}

  // Copies the blocks of `keys` that are in the memory. They are locked only
  // while they are copied. `to` has a span of a block's size for each key.
  // Returns whether each was copied. Counts blocks that are not in the memory
  // as dropped, and blocks that cannot be copied as failed writes.
  std::vector<bool> CopyOut(const KnownKind& kind, std::string_view keys,
                            std::span<const std::span<std::byte>> to,
                            BlockTierCounts& counts);

  // Returns which of `keys` the memory lacks; an error if the kind is gone.
  absl::StatusOr<std::vector<bool>> AreMissing(const KnownKind& kind,
                                               std::string_view keys) const;
  // Reserves places for rows of keys.
  struct Reserved {
    ReservationId reservation;
    std::vector<BlockPlace> places;
  };
  absl::StatusOr<Reserved> Reserve(std::span<const BlockKeys> rows);
  absl::Status CopyIn(std::span<const std::byte> block, BlockPlace place) const;
  // Publishes the reserved blocks at the positions `written`, and ends the
  // reservation.
  void Publish(ReservationId reservation, std::span<const uint32_t> written);

 private:
  BlockCache* const blocks_;
  const SessionId session_;
  const UniqueFd memory_;
  std::atomic<uint64_t> last_lock_ = 0;
  std::atomic<uint64_t> last_reservation_ = 0;
};

}  // namespace pando

#endif  // PANDO_TIERS_BLOCKS_BLOCK_COPIES_H_
