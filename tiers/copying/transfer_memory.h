#ifndef PANDO_TIERS_COPYING_TRANSFER_MEMORY_H_
#define PANDO_TIERS_COPYING_TRANSFER_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/unique_fd.h"
#include "os/shared_memory.h"

namespace pando {

// Host memory that pandod and its pando-movers map, and through which pages
// pass. It has a few blocks for pages on their way, and the blocks of the host
// tier. It is left out of core dumps. Owned by PageCopiers; thread-safe.
class TransferMemory {
 public:
  // One of the blocks for pages on their way. Its destructor gives it back.
  class Block {
   public:
    Block(TransferMemory* memory, std::byte* data)
        : memory_(memory), data_(data) {}
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;
    ~Block() { memory_->GiveBack(data_); }

    std::byte* data() const { return data_; }

   private:
    TransferMemory* const memory_;
    std::byte* const data_;
  };

  // Allocates the memory: some blocks of `block_bytes` bytes, and
  // `host_tier_bytes` bytes for the host tier.
  static absl::StatusOr<std::unique_ptr<TransferMemory>> Make(
      uint64_t block_bytes, uint64_t host_tier_bytes);

  std::span<std::byte> host_tier() const { return host_tier_; }
  uint64_t size_bytes() const { return memory_.size(); }
  // Returns the offset of a block in bytes, or none if it is not in this
  // memory.
  std::optional<uint64_t> OffsetOf(const std::byte* block) const;
  // Waits until a block is free.
  Block Take();
  // Returns a descriptor of the memory for a pando-mover.
  absl::StatusOr<UniqueFd> Share() const { return memory_.Share(); }

 private:
  TransferMemory(SharedMemory memory, uint64_t block_bytes,
                 uint64_t host_tier_bytes);

  void GiveBack(std::byte* block);
  bool HasFree() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !free_.empty();
  }

  const SharedMemory memory_;
  const std::span<std::byte> host_tier_;
  absl::Mutex mutex_;
  std::vector<std::byte*> free_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pando

#endif  // PANDO_TIERS_COPYING_TRANSFER_MEMORY_H_
