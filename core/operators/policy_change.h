#ifndef PANDO_CORE_OPERATORS_POLICY_CHANGE_H_
#define PANDO_CORE_OPERATORS_POLICY_CHANGE_H_

#include <cstdint>
#include <optional>

#include "core/eviction/eviction_policy.h"
#include "core/nodes/step_sizes.h"
#include "core/parts/stepped_work.h"

namespace pando {

// Changes the eviction policy, also for what is cached already. Until the step
// that puts the new order into use, the old policy chooses the victims. From
// then on the new one does, as if it had been set in that step; only kReuse may
// have learnt since its order began to be filled. Meanwhile, what other calls
// insert, use, lock, evict or flush changes both orders.
//
// There is one change at a time. A later PolicyChange takes over an earlier
// one: both are done once the later policy is in use, and the earlier policy
// may never have been in use. A change that is dropped halfway is not undone;
// the next one goes on from there.
class PolicyChange : public SteppedWork {
 public:
  // A step handles about `nodes` nodes.
  explicit PolicyChange(EvictionPolicyKind policy,
                        uint32_t nodes = kStepOrderedNodes)
      : policy_(policy), nodes_(nodes) {}

  bool Step(CacheParts& parts) override {
    if (!previous_.has_value()) previous_ = parts.tree.BeginPolicy(policy_);
    return parts.tree.StepPolicy(nodes_);
  }
  bool Abandon() override { return previous_.has_value(); }

  // The policy that was set before. REQUIRES: Step was called.
  EvictionPolicyKind previous() const { return *previous_; }

 private:
  const EvictionPolicyKind policy_;
  const uint32_t nodes_;
  std::optional<EvictionPolicyKind> previous_;
};

}  // namespace pando

#endif  // PANDO_CORE_OPERATORS_POLICY_CHANGE_H_
