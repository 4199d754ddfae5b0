#include "service/tiers/tiers.h"

#include <utility>

#include "absl/memory/memory.h"
#include "base/status_macros.h"
#include "service/logging/log.h"

namespace pando {

absl::StatusOr<std::unique_ptr<Tiers>> Tiers::Start(const Config& config,
                                                    const Parts& parts) {
  ASSIGN_OR_RETURN(std::unique_ptr<DiskTier> disk,
                   DiskTier::Open(config.disk, *parts.pool));
  const TierFigures figures = disk->figures();
  Log(LogLevel::kInfo, "disk tier opened",
      {{"folder", config.disk.folder},
       {"capacity_pages", figures.capacity_pages},
       {"held_pages", figures.held_pages}});
  return absl::WrapUnique(new Tiers(std::move(disk), config, parts));
}

Tiers::Tiers(std::unique_ptr<DiskTier> disk, const Config& config,
             const Parts& parts)
    : disk_(std::move(disk)),
      mover_(parts.cache, parts.policy, parts.verifier),
      stores_(&mover_, disk_.get()),
      loads_(&mover_, disk_.get(), parts.server, config.min_load_tokens) {}

void Tiers::BeginDrain() {
  drain_ = mover_.Pause();
  loads_.ResumeAll();
}

// A page that a hung disk is read for stays reserved until the disk answers.
// The mover's are counted last: when it drains, they only become fewer.
bool Tiers::IsIdle() const {
  const CacheStats stats = mover_.cache().Stats();
  return stats.locks == 0 && stats.pages.reserved <= mover_.reserved_pages();
}

}  // namespace pando
