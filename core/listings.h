#ifndef PANDO_CORE_LISTINGS_H_
#define PANDO_CORE_LISTINGS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "core/cache_parts.h"
#include "core/operator_results.h"
#include "core/session_table.h"
#include "core/stats.h"

namespace pando {

// What operators are told of the cache: who is there, who holds what, the tree.
// Functions that only look; explanation.h explains matches.

CacheStats StatsOf(const CacheParts& parts);

NamespaceList ListNamespaces(const RadixTree& tree, uint32_t limit);
SessionList ListSessions(const CacheParts& parts, uint32_t limit);
// Of one session, or of all.
LockList ListLocks(const CacheParts& parts, uint32_t limit,
                   std::optional<SessionNumber> session);
// The longest in quarantine first.
QuarantineList ListQuarantine(const CacheParts& parts, uint32_t limit);
// Of one namespace, or of all.
TreeDump DumpTree(const RadixTree& tree, uint32_t limit,
                  std::optional<NamespaceNumber> ns);

// A lock, and how many pages of what is asked about it protects.
struct FoundLock {
  const LockRecord* lock;
  uint32_t pages;
};
// The first `limit` of `found` in the order in which they were taken.
std::vector<LockInfo> OldestLocks(const CacheParts& parts,
                                  std::vector<FoundLock> found, size_t limit);

}  // namespace pando

#endif  // PANDO_CORE_LISTINGS_H_
