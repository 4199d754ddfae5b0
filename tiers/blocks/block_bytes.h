#ifndef PANDO_TIERS_BLOCKS_BLOCK_BYTES_H_
#define PANDO_TIERS_BLOCKS_BLOCK_BYTES_H_

#include <cstddef>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "base/unique_fd.h"
#include "core/requests/block_requests.h"
#include "tiers/local/file_calls.h"

namespace pando {

// Reads and writes blocks in the block memory, through its descriptor, because
// this process does not map it. Owned by BlockTier. Thread-safe, as long as no
// block is written while another thread reads or writes it.
class BlockBytes {
 public:
  explicit BlockBytes(UniqueFd memory) : memory_(std::move(memory)) {}

  absl::Status CopyOut(BlockPlace place, std::span<std::byte> block) const {
    return ReadAll(memory_.get(), block.data(), block.size(), OffsetOf(place));
  }
  absl::Status CopyIn(std::span<const std::byte> block,
                      BlockPlace place) const {
    return WriteAll(memory_.get(), block.data(), block.size(), OffsetOf(place));
  }

 private:
  static off_t OffsetOf(BlockPlace place) {
    return static_cast<off_t>(place.value() * kPlaceBytes);
  }

  const UniqueFd memory_;
};

}  // namespace pando

#endif  // PANDO_TIERS_BLOCKS_BLOCK_BYTES_H_
