#ifndef PANDO_CORE_TREE_MAKE_EVICTION_POLICY_H_
#define PANDO_CORE_TREE_MAKE_EVICTION_POLICY_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "core/eviction/eviction_policy.h"
#include "core/nodes/node.h"
#include "core/reuse/reuse_learner.h"

namespace pando {

// Makes an order that begins with the nodes `unlocked`, which are of one quota
// class. The learner is needed for kReuse only.
std::unique_ptr<EvictionPolicy> MakeEvictionPolicy(
    EvictionPolicyKind kind, std::vector<Node*> unlocked,
    ReuseLearner* learner = nullptr, uint32_t quota_class = 0);

}  // namespace pando

#endif  // PANDO_CORE_TREE_MAKE_EVICTION_POLICY_H_
