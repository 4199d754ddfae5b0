#include "core/quarantine.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

namespace pando {

void Quarantine::Add(SessionId owner, std::vector<PageId> pages,
                     absl::Time until) {
  batches_.push_back({owner, until, std::move(pages)});
}

std::vector<Quarantine::Batch> Quarantine::TakeExpired(absl::Time now) {
  return TakeIf([now](const Batch& batch) { return batch.until <= now; });
}

std::vector<Quarantine::Batch> Quarantine::TakeOf(SessionId owner) {
  return TakeIf([owner](const Batch& batch) { return batch.owner == owner; });
}

uint32_t Quarantine::page_count() const {
  size_t count = 0;
  for (const Batch& batch : batches_) count += batch.pages.size();
  return static_cast<uint32_t>(count);
}

template <typename Predicate>
std::vector<Quarantine::Batch> Quarantine::TakeIf(Predicate&& matches) {
  const auto kept = std::stable_partition(batches_.begin(), batches_.end(),
                                          std::not_fn(matches));
  std::vector<Batch> taken(std::make_move_iterator(kept),
                           std::make_move_iterator(batches_.end()));
  batches_.erase(kept, batches_.end());
  return taken;
}

}  // namespace pando
