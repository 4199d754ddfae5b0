#ifndef PANDO_TIERS_PAGE_COPIERS_H_
#define PANDO_TIERS_PAGE_COPIERS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gpu/kv_pool.h"
#include "os/keeping/kept_descriptors.h"
#include "tiers/copying/page_blocks.h"
#include "tiers/copying/page_movers.h"
#include "tiers/copying/transfer_memory.h"
#include "tiers/local/host_store.h"

namespace pando {

// Who copies the pages of a pool: this process, which maps it, or pando-movers.
// Makes what tiers copy with, and outlives it. Owned by Tiers; immutable after
// the start.
class PageCopiers {
 public:
  struct Config {
    // Where pando-movers connect; empty: this process maps the pool.
    std::string mover_socket;
    // Where that socket is kept for the next process. Null: nowhere.
    KeptDescriptors* kept = nullptr;
    // How long a mover may go on that is not known to have ended.
    absl::Duration quarantine;
    // The host tier, which movers copy to and from without a step between; 0:
    // there is none.
    uint64_t host_tier_bytes = 0;
  };

  // The pool outlives it.
  static absl::StatusOr<std::unique_ptr<PageCopiers>> Start(
      const Config& config, const KvPool* pool);

  absl::StatusOr<std::unique_ptr<PageBlocks>> MakeBlocks() const;
  // REQUIRES: there is a host tier.
  absl::StatusOr<std::unique_ptr<HostStore>> MakeHostStore() const;
  // Null: this process copies.
  PageMovers* movers() const { return movers_.get(); }

 private:
  PageCopiers(const Config& config, const KvPool* pool)
      : host_tier_bytes_(config.host_tier_bytes), pool_(pool) {}

  absl::Status StartMovers(const Config& config);

  const uint64_t host_tier_bytes_;
  const KvPool* const pool_;
  std::unique_ptr<TransferMemory> memory_;
  std::unique_ptr<PageMovers> movers_;
};

}  // namespace pando

#endif  // PANDO_TIERS_PAGE_COPIERS_H_
