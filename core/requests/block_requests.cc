#include "core/requests/block_requests.h"

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

}  // namespace pando
