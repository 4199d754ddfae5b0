#include "core/quarantine.h"

#include <utility>

namespace pando {

void Quarantine::Add(SessionId owner, std::vector<PageId> pages,
                     absl::Time until) {
  if (pages.empty()) return;
  batches_.push_back({owner, until, std::move(pages)});
}

std::vector<PageId> Quarantine::TakeExpired(absl::Time now) {
  return TakeIf([now](const Batch& batch) { return batch.until <= now; });
}

std::vector<PageId> Quarantine::TakeOf(SessionId owner) {
  return TakeIf([owner](const Batch& batch) { return batch.owner == owner; });
}

uint32_t Quarantine::page_count() const {
  size_t count = 0;
  for (const Batch& batch : batches_) count += batch.pages.size();
  return static_cast<uint32_t>(count);
}

template <typename Predicate>
std::vector<PageId> Quarantine::TakeIf(Predicate&& matches) {
  std::vector<PageId> taken;
  std::erase_if(batches_, [&](const Batch& batch) {
    if (!matches(batch)) return false;
    taken.insert(taken.end(), batch.pages.begin(), batch.pages.end());
    return true;
  });
  return taken;
}

}  // namespace pando
