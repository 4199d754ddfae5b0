#ifndef PANDO_TIERS_COPYING_MOVED_PAGES_H_
#define PANDO_TIERS_COPYING_MOVED_PAGES_H_

#include "absl/status/status.h"
#include "gpu/kv_pool.h"
#include "tiers/copying/page_blocks.h"
#include "tiers/copying/page_movers.h"
#include "tiers/copying/transfer_memory.h"

namespace pando {

// Lets the pando-movers copy pages. A block that lies in the transfer memory is
// copied directly; any other block is copied by way of one there. CopyOut and
// CopyIn return UNAVAILABLE if a mover is missing: see PageMovers::Copy.
class MovedPages final : public PageBlocks {
 public:
  // All arguments must outlive this object.
  MovedPages(const KvPool& pool, TransferMemory* memory, PageMovers* movers)
      : PageBlocks(pool), memory_(memory), movers_(movers) {}

  absl::Status CopyOut(PageId page, std::byte* block) const override;
  absl::Status CopyIn(const std::byte* block, PageId page) const override;

 private:
  TransferMemory* const memory_;
  PageMovers* const movers_;
};

}  // namespace pando

#endif  // PANDO_TIERS_COPYING_MOVED_PAGES_H_
