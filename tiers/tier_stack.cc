#include "tiers/tier_stack.h"

#include <algorithm>

namespace pando {

TierStack::TierStack(LocalTier* host, LocalTier* disk, RemoteTier* remote)
    : remote_(remote) {
  if (host != nullptr) local_.push_back({host, KeptIn::kHost});
  if (disk != nullptr) local_.push_back({disk, KeptIn::kDisk});
}

size_t TierStack::CountLoadable(uint64_t ns_digest,
                                std::span<const PageHash> run) {
  size_t pages = CountKept(run).pages;
  if (remote_ != nullptr) {
    pages += remote_->CountPresent(ns_digest, run.subspan(pages));
  }
  return pages;
}

// It asks the tiers in turns, because a tier may have pages that follow a gap
// which a slower tier fills.
TierStack::KeptRun TierStack::CountKept(std::span<const PageHash> run) const {
  KeptRun kept;
  for (bool is_longer = true; is_longer;) {
    is_longer = false;
    for (const auto& [tier, where] : local_) {
      const size_t pages = tier->CountStored(run.subspan(kept.pages));
      if (pages == 0) continue;
      kept.pages += pages;
      kept.slowest = std::max(kept.slowest, where);
      is_longer = true;
    }
  }
  return kept;
}

// It leaves out the shared store: TierStores touches loaded blocks there when
// they enter the cache.
void TierStack::Touch(std::span<const PageHash> prompt) {
  for (const Local& local : local_) local.tier->Touch(prompt);
}

size_t TierStack::Load(uint64_t ns_digest, std::span<const PageHash> run,
                       std::span<const PageId> pages) {
  const size_t loaded = LoadKept(run, pages);
  if (remote_ == nullptr) return loaded;
  return loaded +
         remote_->Load(ns_digest, run.subspan(loaded), pages.subspan(loaded));
}

// When one tier cannot load a block, the next tier may have it.
size_t TierStack::LoadKept(std::span<const PageHash> run,
                           std::span<const PageId> pages) {
  size_t loaded = 0;
  for (bool is_longer = true; is_longer;) {
    is_longer = false;
    for (const Local& local : local_) {
      const std::span<const PageHash> rest = run.subspan(loaded);
      const size_t stored = local.tier->CountStored(rest);
      const size_t now =
          local.tier->Load(rest.first(stored), pages.subspan(loaded, stored));
      loaded += now;
      is_longer |= now > 0;
    }
  }
  return loaded;
}

// The host tier erases at once, so that it has its room back even while the
// disk hangs.
void TierStack::Forget(std::optional<uint64_t> ns_digest) {
  for (const auto& [tier, where] : local_) {
    tier->Forget(ns_digest);
    if (where == KeptIn::kHost) tier->EraseForgotten();
  }
  if (remote_ != nullptr) remote_->Forget(ns_digest);
}

void TierStack::SetModel(uint64_t model) {
  for (const Local& local : local_) {
    local.tier->SetModel(static_cast<uint32_t>(model));
  }
  if (remote_ != nullptr) remote_->SetModel(model);
}

void TierStack::EraseForgotten() {
  for (const Local& local : local_) local.tier->EraseForgotten();
}

}  // namespace pando
