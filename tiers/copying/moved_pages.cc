#include "tiers/copying/moved_pages.h"

#include <cstring>

#include "base/status_macros.h"

namespace pando {

absl::Status MovedPages::CopyOut(PageId page, std::byte* block) const {
  if (const auto offset = memory_->OffsetOf(block)) {
    return movers_->Copy(mover::Direction::kOut, page, *offset);
  }
  const TransferMemory::Block passed = memory_->Take();
  RETURN_IF_ERROR(movers_->Copy(mover::Direction::kOut, page,
                                *memory_->OffsetOf(passed.data())));
  std::memcpy(block, passed.data(), block_bytes());
  return absl::OkStatus();
}

absl::Status MovedPages::CopyIn(const std::byte* block, PageId page) const {
  if (const auto offset = memory_->OffsetOf(block)) {
    return movers_->Copy(mover::Direction::kIn, page, *offset);
  }
  const TransferMemory::Block passed = memory_->Take();
  std::memcpy(passed.data(), block, block_bytes());
  return movers_->Copy(mover::Direction::kIn, page,
                       *memory_->OffsetOf(passed.data()));
}

}  // namespace pando
