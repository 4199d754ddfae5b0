#ifndef PANDO_SERVICE_TIERS_TIERS_H_
#define PANDO_SERVICE_TIERS_TIERS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "service/tiers/disk_tier.h"
#include "service/tiers/mover.h"
#include "service/tiers/tier_loads.h"
#include "service/tiers/tier_stores.h"

namespace pando {

// All that keeps copies of pages outside the pool: what is stored comes from
// events, what is loaded is asked for by calls. Owned by Server.
class Tiers {
 public:
  struct Config {
    DiskTier::Config disk;
    uint32_t min_load_tokens = 0;
  };
  // All outlive the tiers. `verifier` may be null; `server` has not started.
  struct Parts {
    PrefixCache* cache;
    CallPolicy* policy;
    PageVerifier* verifier;
    RpcServer* server;
    const KvPool* pool;
  };

  static absl::StatusOr<std::unique_ptr<Tiers>> Start(const Config& config,
                                                      const Parts& parts);

  EventSink* stores() { return &stores_; }
  PrefixLoader* loads() { return &loads_; }
  // Gives up what is being loaded or stored, and begins nothing any more. Must
  // be called in the turn.
  void BeginDrain();
  // Whether all that the cache has locked or reserved is the tiers'.
  // Thread-safe.
  bool IsIdle() const;
  // Thread-safe.
  TierFigures figures() const { return disk_->figures(); }

 private:
  Tiers(std::unique_ptr<DiskTier> disk, const Config& config,
        const Parts& parts);

  const std::unique_ptr<DiskTier> disk_;
  Mover mover_;
  TierStores stores_;
  TierLoads loads_;
  std::shared_ptr<const void> drain_;  // pauses the mover
};

}  // namespace pando

#endif  // PANDO_SERVICE_TIERS_TIERS_H_
