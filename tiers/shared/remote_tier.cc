#include "tiers/shared/remote_tier.h"

#include <utility>

namespace pando {

RemoteTier::RemoteTier(BlockValues values, std::unique_ptr<RemoteStore> store,
                       const Timeouts& timeouts)
    : blocks_(std::move(values), std::move(store)),
      loads_(&blocks_, timeouts.ask, timeouts.get),
      stores_(&blocks_, timeouts.put) {}

void RemoteTier::Forget(std::optional<uint64_t> ns_digest) {
  blocks_.known().Forget();
  if (ns_digest.has_value()) ns_digest = KeyOf(*ns_digest);
  blocks_.eraser().Erase(ns_digest);
}

void RemoteTier::SetModel(uint64_t model) {
  model_ = model;
  blocks_.known().Forget();
}

size_t RemoteTier::CountStored(std::span<const PageHash> run) const {
  return blocks_.known().CountKnown(run);
}

bool RemoteTier::TouchIfStored(std::span<const PageHash> prompt) {
  return !blocks_.known().IsPeriodOver() &&
         blocks_.known().CountKnown(prompt) == prompt.size();
}

TierFigures RemoteTier::figures() const {
  TierFigures figures;
  figures.page_bytes = blocks_.values().page_bytes();
  loads_.Tell(figures);
  stores_.Tell(figures);
  return figures;
}

}  // namespace pando
