#include "tiers/tiers.h"

#include <initializer_list>
#include <utility>

#include "absl/memory/memory.h"
#include "base/status_macros.h"
#include "os/logging/log.h"
#include "tiers/local/disk_store.h"
#include "tiers/local/io_ring.h"
#include "tiers/shared_store.h"

namespace pando {

namespace {

absl::StatusOr<std::unique_ptr<LocalTier>> MakeHost(
    const Tiers::Config& config, const PageCopiers& copiers) {
  if (config.host_bytes == 0) return nullptr;
  ASSIGN_OR_RETURN(std::unique_ptr<PageBlocks> pages, copiers.MakeBlocks());
  ASSIGN_OR_RETURN(std::unique_ptr<HostStore> store, copiers.MakeHostStore());
  Log(LogLevel::kInfo, "host tier made", {{"capacity_pages", store->slots()}});
  return std::make_unique<LocalTier>(std::move(pages), std::move(store));
}

// Logs, once for all threads of the disk tier, that there is no io_uring.
void TellIfThereAreNoRings() {
  const absl::Status ring = IoRing::Make(1).status();
  if (ring.ok()) return;
  Log(LogLevel::kInfo, "the disk tier makes plain calls instead of io_uring",
      {{"error", ring.message()}});
}

absl::StatusOr<std::unique_ptr<LocalTier>> OpenDisk(
    const Tiers::Config& config, const PageCopiers& copiers) {
  if (config.disk_folder.empty()) return nullptr;
  ASSIGN_OR_RETURN(std::unique_ptr<PageBlocks> pages, copiers.MakeBlocks());
  ASSIGN_OR_RETURN(std::unique_ptr<DiskStore> store,
                   DiskStore::Open({.folder = config.disk_folder,
                                    .max_bytes = config.disk_bytes,
                                    .block_bytes = pages->block_bytes(),
                                    .digest = pages->Digest(config.model)}));
  TellIfThereAreNoRings();
  auto disk = std::make_unique<LocalTier>(std::move(pages), std::move(store));
  const TierFigures figures = disk->figures();
  Log(LogLevel::kInfo, "disk tier opened",
      {{"folder", config.disk_folder},
       {"capacity_pages", figures.capacity_pages},
       {"held_pages", figures.held_pages}});
  return disk;
}

absl::StatusOr<std::unique_ptr<RemoteTier>> OpenRemote(
    const Tiers::Config& config, const PageCopiers& copiers) {
  if (config.shared.empty()) return nullptr;
  ASSIGN_OR_RETURN(std::unique_ptr<PageBlocks> pages, copiers.MakeBlocks());
  const uint64_t digest = pages->Digest(config.model);
  ASSIGN_OR_RETURN(SharedStore shared,
                   OpenSharedStore("tier-shared", config.shared,
                                   config.shared_key_file, digest));
  return std::make_unique<RemoteTier>(
      BlockValues(std::move(pages), shared.digest, std::move(shared.key)),
      std::move(shared.store), RemoteTier::Timeouts());
}

}  // namespace

absl::StatusOr<std::unique_ptr<Tiers>> Tiers::Start(const Config& config,
                                                    const Parts& parts) {
  ASSIGN_OR_RETURN(std::unique_ptr<PageCopiers> copiers,
                   PageCopiers::Start({.mover_socket = config.mover_socket,
                                       .kept = config.kept,
                                       .quarantine = config.quarantine,
                                       .host_tier_bytes = config.host_bytes},
                                      parts.pool));
  ASSIGN_OR_RETURN(std::unique_ptr<LocalTier> host, MakeHost(config, *copiers));
  ASSIGN_OR_RETURN(std::unique_ptr<LocalTier> disk, OpenDisk(config, *copiers));
  ASSIGN_OR_RETURN(std::unique_ptr<RemoteTier> remote,
                   OpenRemote(config, *copiers));
  return absl::WrapUnique(new Tiers(std::move(copiers), std::move(host),
                                    std::move(disk), std::move(remote), config,
                                    parts));
}

Tiers::Tiers(std::unique_ptr<PageCopiers> copiers,
             std::unique_ptr<LocalTier> host, std::unique_ptr<LocalTier> disk,
             std::unique_ptr<RemoteTier> remote, const Config& config,
             const Parts& parts)
    : copiers_(std::move(copiers)),
      host_(std::move(host)),
      disk_(std::move(disk)),
      remote_(std::move(remote)),
      stack_(host_.get(), disk_.get(), remote_.get()),
      mover_(parts.cache, parts.turn, parts.verifier, copiers_->movers()),
      loads_(&mover_, &stack_, parts.actions, config.min_load_tokens) {
  for (StoreTarget* const tier : std::initializer_list<StoreTarget*>{
           host_.get(), disk_.get(), remote_.get()}) {
    if (tier == nullptr) continue;
    stores_.emplace_back(&mover_, tier, config.stores_at_once);
  }
}

// GiveUp comes first: a thread that waits for a stopped pando-mover would never
// end otherwise.
Tiers::~Tiers() {
  if (PageMovers* const movers = copiers_->movers()) movers->GiveUp();
}

std::vector<PageMovers::Presence> Tiers::mover_presence() const {
  PageMovers* const movers = copiers_->movers();
  if (movers == nullptr) return {};
  return movers->presence();
}

std::vector<EventSink*> Tiers::stores() {
  std::vector<EventSink*> sinks;
  for (TierStores& stores : stores_) sinks.push_back(&stores);
  return sinks;
}

std::optional<TierFigures> Tiers::host_figures() const {
  if (host_ == nullptr) return std::nullopt;
  return host_->figures();
}

TierFigures Tiers::disk_figures() const {
  return disk_ == nullptr ? TierFigures() : disk_->figures();
}

std::optional<TierFigures> Tiers::remote_figures() const {
  if (remote_ == nullptr) return std::nullopt;
  return remote_->figures();
}

void Tiers::BeginDrain() {
  drain_ = mover_.Pause();
  loads_.ResumeAll();
}

// A page that is being loaded from a hung disk stays reserved until the disk
// answers; so reserved pages of the mover do not count. They are counted after
// those of the cache: while the tiers drain, they only become fewer.
bool Tiers::IsIdle() const {
  const CacheStats stats = mover_.cache().Stats();
  return stats.locks == 0 && stats.pages.reserved <= mover_.reserved_pages();
}

}  // namespace pando
