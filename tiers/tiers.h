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

// Keeps copies of pages outside the pool: the tiers, and the objects that store
// pages there and load them. Events say which pages to store; calls ask for
// loads. Owned by Server.
class Tiers {
 public:
  struct Config {
    std::string model;
    // The path of the socket to which pando-movers connect. If it is empty,
    // this process maps the pool and copies the pages.
    std::string mover_socket;
    // Keeps that socket for the next pandod. It is null if nothing keeps it.
    KeptDescriptors* kept = nullptr;
    // See MoverConnection::Times.
    absl::Duration quarantine;
    // Each tier is absent if its size is 0, or its folder or its addresses are
    // empty.
    uint64_t host_bytes = 0;
    std::string disk_folder;
    uint64_t disk_bytes = 0;
    std::vector<std::string>
        shared;                   // addresses, as OpenSharedStore reads them
    std::string shared_key_file;  // empty: what is shared is not signed
    uint32_t min_load_tokens = 0;
    // Whether pages are stored when they enter the cache, and not only when
    // they are hit there.
    bool stores_at_once = true;
  };
  // The pointers must outlive the tiers, and none of `actions` may have run
  // yet.
  struct Parts {
    PrefixCache* cache;
    Turn* turn;
    TurnActions* actions;
    Mover::Verifier verifier;
    const KvPool* pool;
  };

  // Opens the tiers, and begins to serve pando-movers if there is a socket for
  // them. Fails if memory, a folder, a store or the socket cannot be had.
  static absl::StatusOr<std::unique_ptr<Tiers>> Start(const Config& config,
                                                      const Parts& parts);
  ~Tiers();

  // Returns the sinks that the publisher of events must call. They live as long
  // as this object.
  std::vector<EventSink*> stores();
  // The changes in the tiers of this machine; null if there is no such tier.
  TierChanges* host_changes() { return host_.get(); }
  TierChanges* disk_changes() { return disk_.get(); }
  PrefixLoader* loads() { return &loads_; }
  // Says which configuration of the model computes. What the tiers keep of
  // others is not found any more. Must be called in the turn, once.
  void SetModel(const std::string& model_digest) {
    loads_.SetModel(model_digest);
  }
  // Ends all loads and stores, and begins no more. Must be called in the turn.
  void BeginDrain();
  // Returns whether the cache has no locks, and no reserved pages except those
  // of the tiers. Thread-safe.
  bool IsIdle() const;
  // The figures of each tier, as TierFigures says; none, or all 0 for the disk,
  // where there is no such tier. Thread-safe.
  std::optional<TierFigures> host_figures() const;
  TierFigures disk_figures() const;
  std::optional<TierFigures> remote_figures() const;
  // Says which devices have a pando-mover; empty if this process copies the
  // pages itself. Thread-safe.
  std::vector<PageMovers::Presence> mover_presence() const;

 private:
  Tiers(std::unique_ptr<PageCopiers> copiers, std::unique_ptr<LocalTier> host,
        std::unique_ptr<LocalTier> disk, std::unique_ptr<RemoteTier> remote,
        const Config& config, const Parts& parts);

  const std::unique_ptr<PageCopiers> copiers_;
  // Each is null if there is no such tier.
  const std::unique_ptr<LocalTier> host_;
  const std::unique_ptr<LocalTier> disk_;
  const std::unique_ptr<RemoteTier> remote_;
  TierStack stack_;
  Mover mover_;
  std::deque<TierStores> stores_;  // one for each tier
  TierLoads loads_;
  std::shared_ptr<const void> drain_;  // pauses the mover, once set
};

}  // namespace pando

#endif  // PANDO_TIERS_TIERS_H_
