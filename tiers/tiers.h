#ifndef PANDO_TIERS_TIERS_H_
#define PANDO_TIERS_TIERS_H_

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "os/keeping/kept_descriptors.h"
#include "tiers/copying/page_movers.h"
#include "tiers/local/local_tier.h"
#include "tiers/mover.h"
#include "tiers/page_copiers.h"
#include "tiers/shared/remote_tier.h"
#include "tiers/tier_loads.h"
#include "tiers/tier_stack.h"
#include "tiers/tier_stores.h"

namespace pando {

// All that keeps copies of pages outside the pool: what is stored comes from
// events, what is loaded is asked for by calls. Owned by Server.
class Tiers {
 public:
  struct Config {
    std::string model;
    // Where pando-movers connect; empty: pages are mapped and copied here.
    std::string mover_socket;
    // Where that socket is kept for the next process. Null: nowhere.
    KeptDescriptors* kept = nullptr;
    // How long a mover may go on that is not known to have ended.
    absl::Duration quarantine;
    // 0, empty: there is no such tier.
    uint64_t host_bytes = 0;
    std::string disk_folder;
    uint64_t disk_bytes = 0;
    std::vector<std::string>
        shared;                   // addresses, as OpenSharedStore reads them
    std::string shared_key_file;  // empty: what is shared is not signed
    uint32_t min_load_tokens = 0;
    // What enters the cache is stored, not only what is hit there.
    bool stores_at_once = true;
  };
  // All outlive the tiers; none of the actions has run yet.
  struct Parts {
    PrefixCache* cache;
    Turn* turn;
    TurnActions* actions;
    Mover::Verifier verifier;
    const KvPool* pool;
  };

  static absl::StatusOr<std::unique_ptr<Tiers>> Start(const Config& config,
                                                      const Parts& parts);
  ~Tiers();

  std::vector<EventSink*> stores();
  // What the tiers of this machine have; null: there is no such tier.
  TierChanges* host_changes() { return host_.get(); }
  TierChanges* disk_changes() { return disk_.get(); }
  PrefixLoader* loads() { return &loads_; }
  // In the turn; told once: which configuration of the model computes. What the
  // tiers keep of others is not found.
  void SetModel(const std::string& model_digest) {
    loads_.SetModel(model_digest);
  }
  // Gives up what is being loaded or stored, and begins nothing any more. Must
  // be called in the turn.
  void BeginDrain();
  // Whether all that the cache has locked or reserved is the tiers'.
  // Thread-safe.
  bool IsIdle() const;
  // Thread-safe.
  std::optional<TierFigures> host_figures() const;
  TierFigures disk_figures() const;
  std::optional<TierFigures> remote_figures() const;
  // Empty where there are no pando-movers. Thread-safe.
  std::vector<PageMovers::Presence> mover_presence() const;

 private:
  Tiers(std::unique_ptr<PageCopiers> copiers, std::unique_ptr<LocalTier> host,
        std::unique_ptr<LocalTier> disk, std::unique_ptr<RemoteTier> remote,
        const Config& config, const Parts& parts);

  const std::unique_ptr<PageCopiers> copiers_;
  // Null where there is none.
  const std::unique_ptr<LocalTier> host_;
  const std::unique_ptr<LocalTier> disk_;
  const std::unique_ptr<RemoteTier> remote_;
  TierStack stack_;
  Mover mover_;
  std::deque<TierStores> stores_;  // of each tier
  TierLoads loads_;
  std::shared_ptr<const void> drain_;  // pauses the mover
};

}  // namespace pando

#endif  // PANDO_TIERS_TIERS_H_
