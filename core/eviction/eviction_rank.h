#ifndef PANDO_CORE_EVICTION_EVICTION_RANK_H_
#define PANDO_CORE_EVICTION_EVICTION_RANK_H_

#include <compare>
#include <cstdint>

#include "core/eviction/eviction_policy.h"
#include "core/nodes/node.h"

namespace pando {

// The rank by which a policy compares leaves. The leaf with the smallest rank
// is evicted first.
struct EvictionRank {
  int64_t key;
  uint64_t last_access;  // 0 if the policy does not compare it
  uint64_t id;

  friend auto operator<=>(const EvictionRank&, const EvictionRank&) = default;
};

EvictionRank EvictionRankOf(EvictionPolicyKind kind, const Node& node);

}  // namespace pando

#endif  // PANDO_CORE_EVICTION_EVICTION_RANK_H_
