#include "tiers/blocks/disk_source.h"

#include "os/logging/log.h"

namespace pando {

void DiskSource::Read(const std::shared_ptr<KnownKind>& kind,
                      std::span<BlockRead> blocks) {
  for (BlockRead& block : blocks) block.status = ReadOne(*kind, block);
}

absl::Status DiskSource::ReadOne(const KnownKind& kind,
                                 const BlockRead& block) {
  const absl::Status gone = absl::NotFoundError("the tier has it no more");
  // The block may have been evicted since the request, or its kind renewed.
  if (!kind.is_newest || !kept_->Has(block.name)) return gone;
  absl::Status read = files_->Read(block.name, block.value);
  if (read.ok()) read = seal_.Verify(kind.kind, block.key, block.value);
  if (read.ok()) return read;
  if (!kept_->Has(block.name)) return gone;
  const bool is_damaged = absl::IsDataLoss(read);
  ++(is_damaged ? counts_->damaged_blocks : counts_->failed_reads);
  Log(LogLevel::kError, "a stored block cannot be loaded",
      {{"error", read.message()}});
  // If only the disk fails now, it may still have the block.
  if (!is_damaged && !absl::IsNotFound(read)) return read;
  files_->Erase(block.name).IgnoreError();
  kept_->Forget(block.name);
  return gone;
}

}  // namespace pando
