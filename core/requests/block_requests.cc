#include "core/requests/block_requests.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace pando {

KindCounters& KindCounters::operator+=(const KindCounters& other) {
  hits += other.hits;
  misses += other.misses;
  pending += other.pending;
  reserved += other.reserved;
  published += other.published;
  discarded += other.discarded;
  duplicates += other.duplicates;
  overdue += other.overdue;
  no_room += other.no_room;
  for (size_t i = 0; i < evicted.size(); ++i) evicted[i] += other.evicted[i];
  extents_lost += other.extents_lost;
  return *this;
}

uint64_t KindCounters::evicted_blocks() const {
  return std::accumulate(evicted.begin(), evicted.end(), uint64_t{0});
}

std::vector<const KindStats*> LargestKinds(const BlockStats& stats,
                                           size_t limit) {
  std::vector<const KindStats*> largest;
  for (const KindStats& kind : stats.kinds) largest.push_back(&kind);
  std::ranges::stable_sort(largest, std::greater<>(), &KindStats::extents);
  largest.resize(std::min(limit, largest.size()));
  return largest;
}

}  // namespace pando
