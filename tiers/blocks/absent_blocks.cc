#include "tiers/blocks/absent_blocks.h"

#include <algorithm>
#include <utility>

#include "os/monotonic_clock.h"

namespace pando {

namespace {

// So many names are added under the mutex, for which calls may wait.
constexpr size_t kAddedAtOnce = 256;

}  // namespace

AbsentBlocks::AbsentBlocks() { newer_.names.reserve(kMost); }

void AbsentBlocks::Add(std::span<const BlockName> names) {
  while (!names.empty()) {
    BeginBatch();
    absl::MutexLock hold(&mutex_);
    const size_t room = kMost - std::min(kMost, newer_.names.size());
    const auto some = names.first(std::min({names.size(), room, kAddedAtOnce}));
    newer_.names.insert(some.begin(), some.end());
    names = names.subspan(some.size());
  }
}

// A batch gets its full size before it is used, and is destroyed after the
// mutex, so that Have waits for neither.
void AbsentBlocks::BeginBatch() {
  const absl::Time now = MonotonicNow();
  {
    absl::MutexLock hold(&mutex_);
    if (now - newer_.since < kFor && newer_.names.size() < kMost) return;
  }
  Batch next = {.names = {}, .since = now};
  next.names.reserve(kMost);
  absl::MutexLock hold(&mutex_);
  std::swap(older_, newer_);
  std::swap(newer_, next);
}

std::vector<bool> AbsentBlocks::Have(std::span<const BlockName> names) const {
  std::vector<bool> have;
  const absl::Time now = MonotonicNow();
  absl::MutexLock hold(&mutex_);
  const auto has = [&](const Batch& batch, const BlockName& name) {
    return now - batch.since < 2 * kFor && batch.names.contains(name);
  };
  for (const BlockName& name : names) {
    have.push_back(has(newer_, name) || has(older_, name));
  }
  return have;
}

}  // namespace pando
