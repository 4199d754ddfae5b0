#ifndef PANDO_CORE_OPERATORS_POLICY_CHANGE_H_
#define PANDO_CORE_OPERATORS_POLICY_CHANGE_H_

#include <cstdint>
#include <optional>

#include "core/eviction/eviction_policy.h"
#include "core/nodes/step_sizes.h"
#include "core/parts/stepped_work.h"

namespace pando {

// Changes the order of eviction, also of what is cached already. Until the step
// that puts the new order into use, victims are those of the old one; from then
// on they are those that the new policy chooses, as if it had been set at once
// in that step; but kReuse has learnt since its order began to be filled. What
// other calls insert, use, lock, evict or flush meanwhile changes both orders.
//
// There is one change at a time: a later one takes over, and both are done when
// the policy of the later is in use, perhaps without that of the earlier ever
// having been. One that is dropped is not undone: the next goes on from there.
class PolicyChange : public SteppedWork {
 public:
  // A step costs as much as `nodes` nodes.
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
