#include "core/sessions/quarantine.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

namespace pando {

void Quarantine::Add(Batch batch) {
  batches_.insert(After(batch.number), std::move(batch));
}

void Quarantine::Remove(WriterId writer) {
  for (Batch& batch : batches_) batch.writers.Remove(writer);
}

std::vector<Quarantine::Batch> Quarantine::TakeReleasable(absl::Time now) {
  return TakeIf([now](const Batch& batch) {
    return !batch.is_held() &&
           (!batch.writers.has_unwatched() || batch.until <= now);
  });
}

std::vector<Quarantine::Batch> Quarantine::TakeBatchesOf(SessionId owner) {
  return TakeIf([owner](const Batch& batch) { return batch.owner == owner; });
}

Quarantine::Part Quarantine::TakePages(SessionNumber owner, size_t most) {
  Part part;
  const auto batch =
      std::find_if(batches_.begin(), batches_.end(),
                   [owner](const Batch& b) { return b.number == owner; });
  if (batch == batches_.end()) return part;
  const auto taken =
      static_cast<ptrdiff_t>(std::min(most, batch->pages.size()));
  part.pages.assign(batch->pages.end() - taken, batch->pages.end());
  batch->pages.resize(batch->pages.size() - part.pages.size());
  if (batch->pages.empty()) {
    part.owner = batch->owner;
    part.blocks = std::move(batch->blocks);
    batches_.erase(batch);
  }
  return part;
}

const Quarantine::Batch* Quarantine::BatchAfter(SessionNumber number) const {
  const auto next = After(number);
  return next == batches_.end() ? nullptr : &*next;
}

Quarantine::BlockCounts Quarantine::block_counts() const {
  BlockCounts counts;
  for (const Batch& batch : batches_) {
    counts.locked += batch.blocks->locked;
    counts.reserved += batch.blocks->reserved;
  }
  return counts;
}

uint32_t Quarantine::page_count() const {
  size_t count = 0;
  for (const Batch& batch : batches_) count += batch.pages.size();
  return static_cast<uint32_t>(count);
}

uint32_t Quarantine::held_page_count() const {
  size_t count = 0;
  for (const Batch& batch : batches_) {
    if (batch.is_held()) count += batch.pages.size();
  }
  return static_cast<uint32_t>(count);
}

std::vector<Quarantine::Batch>::const_iterator Quarantine::After(
    SessionNumber number) const {
  return std::upper_bound(
      batches_.begin(), batches_.end(), number,
      [](SessionNumber n, const Batch& batch) { return n < batch.number; });
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
