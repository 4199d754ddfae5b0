#include "tiers/blocks/block_copies.h"

#include "base/status_macros.h"
#include "os/logging/log.h"
#include "tiers/local/file_calls.h"

namespace pando {
namespace {

off_t OffsetOf(BlockPlace place) {
  return static_cast<off_t>(place.value() * kPlaceBytes);
}

BlockKeys RowOf(const KnownKind& kind, std::string_view keys) {
  return {.kind = kind.kind.number, .keys = keys, .before = {}};
}

}  // namespace

std::vector<bool> BlockCopies::CopyOut(const KnownKind& kind,
                                       std::string_view keys,
                                       std::span<const std::span<std::byte>> to,
                                       BlockTierCounts& counts) {
  std::vector<bool> are_copied(to.size());
  const BlockLockId lock(++last_lock_);
  const BlockKeys row = RowOf(kind, keys);
  const absl::StatusOr<std::vector<BlockPlace>> places =
      blocks_->Acquire({.session = session_, .lock = lock, .keys = {&row, 1}});
  for (size_t i = 0; i < to.size(); ++i) {
    if (!places.ok() || !IsPlace((*places)[i])) {
      ++counts.dropped_blocks;
      continue;
    }
    const absl::Status copied = ReadAll(memory_.get(), to[i].data(),
                                        to[i].size(), OffsetOf((*places)[i]));
    are_copied[i] = copied.ok();
    if (copied.ok()) continue;
    ++counts.failed_writes;
    Log(LogLevel::kError, "a block cannot be copied from the memory",
        {{"error", copied.message()}});
  }
  blocks_->Release(session_, {&lock, 1}).IgnoreError();
  return are_copied;
}

absl::StatusOr<std::vector<bool>> BlockCopies::AreMissing(
    const KnownKind& kind, std::string_view keys) const {
  const BlockKeys row = RowOf(kind, keys);
  ASSIGN_OR_RETURN(const std::vector<BlockPlace> places,
                   blocks_->Lookup(session_, {&row, 1}));
  std::vector<bool> are_missing;
  for (const BlockPlace place : places) {
    are_missing.push_back(place == kMissingBlock);
  }
  return are_missing;
}

absl::StatusOr<BlockCopies::Reserved> BlockCopies::Reserve(
    std::span<const BlockKeys> rows) {
  const ReservationId reservation(++last_reservation_);
  ASSIGN_OR_RETURN(
      std::vector<BlockPlace> places,
      blocks_->Reserve(
          {.session = session_, .reservation = reservation, .keys = rows}));
  return Reserved{reservation, std::move(places)};
}

absl::Status BlockCopies::CopyIn(std::span<const std::byte> block,
                                 BlockPlace place) const {
  return WriteAll(memory_.get(), block.data(), block.size(), OffsetOf(place));
}

void BlockCopies::Publish(ReservationId reservation,
                          std::span<const uint32_t> written) {
  if (!written.empty()) {
    blocks_->Publish(session_, reservation, written).IgnoreError();
  }
  blocks_->Discard(session_, {&reservation, 1}).IgnoreError();
}

}  // namespace pando
