#include "service/tiers/tier_stack.h"

namespace pando {

size_t TierStack::CountLoadable(uint64_t ns_digest,
                                std::span<const PageHash> run) {
  size_t pages = CountOnDisk(run);
  if (remote_ != nullptr) {
    pages += remote_->CountPresent(ns_digest, run.subspan(pages));
  }
  return pages;
}

size_t TierStack::CountOnDisk(std::span<const PageHash> run) const {
  return disk_ == nullptr ? 0 : disk_->CountStored(run);
}

// What is loaded from the shared store is touched there when it enters the
// cache, as what is stored.
void TierStack::Touch(std::span<const PageHash> prompt) {
  if (disk_ != nullptr) disk_->Touch(prompt);
}

size_t TierStack::Load(uint64_t ns_digest, std::span<const PageHash> run,
                       std::span<const PageId> pages) {
  const size_t loaded = disk_ == nullptr ? 0 : disk_->Load(run, pages);
  if (remote_ == nullptr) return loaded;
  return loaded +
         remote_->Load(ns_digest, run.subspan(loaded), pages.subspan(loaded));
}

void TierStack::Forget(std::optional<uint64_t> ns_digest) {
  if (disk_ != nullptr) disk_->Forget(ns_digest);
  if (remote_ != nullptr) remote_->Forget(ns_digest);
}

void TierStack::EraseForgotten() {
  if (disk_ != nullptr) disk_->EraseForgotten();
}

}  // namespace pando
