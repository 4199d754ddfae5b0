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

// Pages as values of a store that is trusted with nothing: a header that names
// the block, its MAC if those who share have a key, then the page. Owned by
// RemoteBlocks. Thread-safe; a page must not be written while it is copied.
class BlockValues {
 public:
  // `digest`: blocks of another one are of another model or shape, or of
  // another key. Without a `key`, values are not signed.
  BlockValues(std::unique_ptr<PageBlocks> pages, uint64_t digest,
              std::unique_ptr<SharedKey> key)
      : pages_(std::move(pages)), digest_(digest), key_(std::move(key)) {}

  uint64_t page_bytes() const { return pages_->block_bytes(); }
  size_t value_bytes() const;

  // The bytes that are copied out are no value before they are sealed.
  absl::Status CopyOut(PageId page, std::span<std::byte> value) const;
  void Seal(const PageHash& hash, std::span<std::byte> value) const;
  // DataLoss: it is not what was sealed.
  absl::Status Verify(const PageHash& hash,
                      std::span<const std::byte> value) const;
  absl::Status CopyIn(std::span<const std::byte> value, PageId page) const;

 private:
  size_t header_bytes() const;

  std::unique_ptr<PageBlocks> pages_;
  uint64_t digest_;
  std::unique_ptr<SharedKey> key_;
};

}  // namespace pando

#endif  // PANDO_TIERS_SHARED_BLOCK_VALUES_H_
