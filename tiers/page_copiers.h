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

// Knows how the pages of a pool are copied: by this process, which maps the
// pool, or by pando-movers. Makes the PageBlocks and the HostStore of the
// tiers, and must outlive them. Owned by Tiers; immutable after Start.
class PageCopiers {
 public:
  struct Config {
    // The path of the socket to which pando-movers connect. If it is empty,
    // this process maps the pool and copies the pages.
    std::string mover_socket;
    // Keeps that socket for the next pandod. It is null if nothing keeps it.
    KeptDescriptors* kept = nullptr;
    // See MoverConnection::Times.
    absl::Duration quarantine;
    // The size of the host tier; 0 if there is none. With pando-movers it lies
    // in memory that they map, so that they copy to and from it directly.
    uint64_t host_tier_bytes = 0;
  };

  // Begins to serve the socket for pando-movers, if there is one. `pool` must
  // outlive the result. Fails when the socket or the memory cannot be had.
  static absl::StatusOr<std::unique_ptr<PageCopiers>> Start(
      const Config& config, const KvPool* pool);

  // Makes an object with which one tier copies pages. Fails if the pool cannot
  // be mapped.
  absl::StatusOr<std::unique_ptr<PageBlocks>> MakeBlocks() const;
  // REQUIRES: there is a host tier.
  absl::StatusOr<std::unique_ptr<HostStore>> MakeHostStore() const;
  // Returns null if this process copies the pages itself.
  PageMovers* movers() const { return movers_.get(); }

 private:
  PageCopiers(const Config& config, const KvPool* pool)
      : host_tier_bytes_(config.host_tier_bytes), pool_(pool) {}

  // Makes the transfer memory and begins to serve the movers' socket.
  absl::Status StartMovers(const Config& config);

  const uint64_t host_tier_bytes_;
  const KvPool* const pool_;
  // Both are null if this process copies the pages itself.
  std::unique_ptr<TransferMemory> memory_;
  std::unique_ptr<PageMovers> movers_;
};

}  // namespace pando

#endif  // PANDO_TIERS_PAGE_COPIERS_H_
