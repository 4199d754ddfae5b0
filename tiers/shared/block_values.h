#ifndef PANDO_TIERS_SHARED_BLOCK_VALUES_H_
#define PANDO_TIERS_SHARED_BLOCK_VALUES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "base/ids.h"
#include "core/nodes/page_hash.h"
#include "tiers/copying/page_blocks.h"
#include "tiers/shared/shared_key.h"

namespace pando {

// Converts pages to values of a shared store, and back. The store is not
// trusted, so a value begins with a header that names the block and has a
// checksum of the page. A MAC follows if there is a shared key, then the page.
// Owned by RemoteBlocks. Thread-safe; a page must not be written while it is
// copied.
class BlockValues {
 public:
  // `digest` names the model and the shape of the blocks, and the key. Values
  // are signed with `key`, unless it is null.
  BlockValues(std::unique_ptr<PageBlocks> pages, uint64_t digest,
              std::unique_ptr<SharedKey> key)
      : pages_(std::move(pages)), digest_(digest), key_(std::move(key)) {}

  uint64_t page_bytes() const { return pages_->block_bytes(); }
  size_t value_bytes() const;

  // Copies a page into a value of value_bytes() bytes. It is not a valid value
  // until Seal has written its header.
  absl::Status CopyOut(PageId page, std::span<std::byte> value) const;
  // Writes the header, and the MAC if there is a key, in front of the page.
  void Seal(const PageHash& hash, std::span<std::byte> value) const;
  // Returns DATA_LOSS if `value` is not what Seal made for this block.
  absl::Status Verify(const PageHash& hash,
                      std::span<const std::byte> value) const;
  // Copies the page of a value to the pool. Does not verify it.
  absl::Status CopyIn(std::span<const std::byte> value, PageId page) const;

 private:
  size_t header_bytes() const;

  std::unique_ptr<PageBlocks> pages_;
  uint64_t digest_;
  std::unique_ptr<SharedKey> key_;
};

}  // namespace pando

#endif  // PANDO_TIERS_SHARED_BLOCK_VALUES_H_
