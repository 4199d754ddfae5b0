#include "core/tree/make_eviction_policy.h"

#include <utility>

#include "core/eviction/lru_policy.h"
#include "core/eviction/ranked_policy.h"
#include "core/reuse/reuse_policy.h"

namespace pando {

std::unique_ptr<EvictionPolicy> MakeEvictionPolicy(EvictionPolicyKind kind,
                                                   std::vector<Node*> unlocked,
                                                   ReuseLearner* learner,
                                                   uint32_t quota_class) {
  std::unique_ptr<EvictionPolicy> policy;
  switch (kind) {
    case EvictionPolicyKind::kLru:
      policy = std::make_unique<LruPolicy>();
      SortByLastUse(unlocked);
      break;
    case EvictionPolicyKind::kReuse:
      policy = std::make_unique<ReusePolicy>(learner, quota_class);
      SortByLastUse(unlocked);
      break;
    default:
      policy = std::make_unique<RankedPolicy>(kind);
  }
  for (Node* node : unlocked) policy->Add(*node);
  return policy;
}

}  // namespace pando
