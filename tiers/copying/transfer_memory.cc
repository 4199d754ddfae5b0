#include "tiers/copying/transfer_memory.h"

#include <sys/mman.h>

#include <cerrno>

#include "absl/memory/memory.h"
#include "base/status_macros.h"

namespace pando {
namespace {

// There are as many blocks as the disk tier has threads that copy.
constexpr uint64_t kBlocks = 8;
// The movers pin this memory for their devices, so it and the blocks on their
// way begin at pages of the system.
constexpr uint64_t kAlignment = 4096;

uint64_t RoundedUp(uint64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TransferMemory>> TransferMemory::Make(
    uint64_t block_bytes, uint64_t host_tier_bytes) {
  const uint64_t bytes =
      RoundedUp(kBlocks * RoundedUp(block_bytes) + host_tier_bytes);
  ASSIGN_OR_RETURN(SharedMemory memory,
                   SharedMemory::Create("pando-transfers", bytes,
                                        SharedMemory::Peers::kMayWrite));
  if (madvise(memory.data(), memory.size(), MADV_DONTDUMP) != 0) {
    return absl::ErrnoToStatus(errno, "madvise of the transfer memory");
  }
  return absl::WrapUnique(
      new TransferMemory(std::move(memory), block_bytes, host_tier_bytes));
}

TransferMemory::TransferMemory(SharedMemory memory, uint64_t block_bytes,
                               uint64_t host_tier_bytes)
    : memory_(std::move(memory)),
      host_tier_(memory_.data() + kBlocks * RoundedUp(block_bytes),
                 host_tier_bytes) {
  for (uint64_t i = 0; i < kBlocks; ++i) {
    free_.push_back(memory_.data() + i * RoundedUp(block_bytes));
  }
}

std::optional<uint64_t> TransferMemory::OffsetOf(const std::byte* block) const {
  if (block < memory_.data() || block >= memory_.data() + memory_.size()) {
    return std::nullopt;
  }
  return static_cast<uint64_t>(block - memory_.data());
}

TransferMemory::Block TransferMemory::Take() {
  absl::MutexLock hold(&mutex_);
  mutex_.Await(absl::Condition(this, &TransferMemory::HasFree));
  std::byte* const block = free_.back();
  free_.pop_back();
  return Block(this, block);
}

void TransferMemory::GiveBack(std::byte* block) {
  absl::MutexLock hold(&mutex_);
  free_.push_back(block);
}

}  // namespace pando
