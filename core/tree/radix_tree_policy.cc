// How the policy of RadixTree is changed: new orders are filled in steps, take
// the place of the old ones, and these are taken down in steps.

#include <limits>
#include <utility>

#include "core/eviction/filling_lru.h"
#include "core/eviction/ranked_policy.h"
#include "core/reuse/reuse_policy.h"
#include "core/tree/radix_tree.h"

namespace pando {
namespace {

// Whether the order is in Node::older and newer.
bool IsLinked(EvictionPolicyKind policy) {
  return policy == EvictionPolicyKind::kLru ||
         policy == EvictionPolicyKind::kReuse;
}

}  // namespace

EvictionPolicyKind RadixTree::BeginPolicy(EvictionPolicyKind policy) {
  return std::exchange(wanted_, policy);
}

bool RadixTree::StepPolicy(uint32_t nodes) {
  if (!retired_.empty()) {
    if (retired_.back()->Shrink(nodes)) retired_.pop_back();
  } else if (unlinking_.has_value()) {
    Unlink(nodes);
  } else if (filling_.has_value()) {
    FillOrders(nodes);
  } else if (policy_ == wanted_ && is_linked_ == IsLinked(wanted_)) {
    return true;
  } else {
    BeginFilling();
  }
  return false;
}

void RadixTree::SetPolicy(EvictionPolicyKind policy) {
  BeginPolicy(policy);
  while (!StepPolicy(std::numeric_limits<uint32_t>::max())) continue;
}

void RadixTree::MakeLearner() {
  learner_ = std::make_unique<ReuseLearner>(
      ReuseLearner::Options{
          .page_tokens = page_tokens_,
          .capacity_pages = max_pages_,
          .quota_classes = static_cast<uint32_t>(classes_.size()),
          .warmup_ticks = reuse_.warmup_ticks,
          .first_tick = next_tick_},
      &nodes_);
}

// `lru` and `reuse` use the same links in a node, so they cannot exist at the
// same time. A change between them goes through a RankedPolicy that orders the
// leaves as lru does.
void RadixTree::BeginFilling() {
  const bool is_between = is_linked_ && IsLinked(wanted_);
  filling_ = Filling{.wanted = wanted_,
                     .policy = is_between ? EvictionPolicyKind::kLru : wanted_,
                     .is_linked = IsLinked(wanted_) && !is_between};
  const bool is_reuse = filling_->policy == EvictionPolicyKind::kReuse;
  if (is_reuse && learner_ == nullptr) MakeLearner();
  for (uint32_t c = 0; c < classes_.size(); ++c) {
    std::unique_ptr<EvictionPolicy> order;
    if (is_reuse) {
      order = std::make_unique<ReusePolicy>(learner_.get(), c);
    } else if (filling_->is_linked) {
      order = std::make_unique<FillingLru>(&nodes_);
    } else {
      order = std::make_unique<RankedPolicy>(filling_->policy);
    }
    classes_[c].order.Begin(std::move(order));
  }
}

void RadixTree::FillOrders(uint32_t nodes) {
  if (filling_->wanted != wanted_) {  // another change has come
    const bool was_linked = filling_->is_linked;
    filling_.reset();
    TakeDown(&ChangingOrder::Stop, was_linked);
    DropUnusedLearner();
    return;
  }
  uint32_t& cell = filling_->next_cell;
  if (cell < nodes_.cells()) {
    for (; nodes > 0 && cell < nodes_.cells(); --nodes) {
      Node* const node = nodes_.FindAt(cell++);
      if (node == nullptr || node->is_root() || node->is_locked()) continue;
      OrderOf(*node).next()->AddEarlier(*node);
    }
    return;
  }
  for (ClassState& c : classes_) {
    if (!c.order.next()->Fill(nodes)) return;
  }
  const bool was_linked = std::exchange(is_linked_, filling_->is_linked);
  policy_ = filling_->policy;
  filling_.reset();
  TakeDown(&ChangingOrder::Use, was_linked);
  DropUnusedLearner();
}

// Takes an order that is not needed any more from each class. A small one is
// deleted at once; others go to retired_.
void RadixTree::TakeDown(
    std::unique_ptr<EvictionPolicy> (ChangingOrder::*take)(), bool is_linked) {
  for (ClassState& c : classes_) {
    std::unique_ptr<EvictionPolicy> order = (c.order.*take)();
    if (order != nullptr && !order->Shrink(0)) {
      retired_.push_back(std::move(order));
    }
  }
  if (is_linked) unlinking_ = 0;
}

// Removes from the nodes what an order, and perhaps its learner, left in them
// when they went. REQUIRES: no linked order is in use or being filled, because
// this clears the links of all nodes.
void RadixTree::Unlink(uint32_t nodes) {
  for (; nodes > 0 && *unlinking_ < nodes_.cells(); --nodes) {
    Node* const node = nodes_.FindAt((*unlinking_)++);
    if (node == nullptr) continue;
    node->older = node->newer = nullptr;
    if (learner_ != nullptr) {
      if (learner_->Knows(*node)) learner_->SetListed(*node, false);
    } else if (!node->is_root()) {
      node->segment.DropPrints();
    }
  }
  if (*unlinking_ == nodes_.cells()) unlinking_.reset();
}

// The prints stay in the segments; Unlink removes them.
void RadixTree::DropUnusedLearner() {
  if (reuse_.learns_always || policy_ == EvictionPolicyKind::kReuse) return;
  if (learner_ == nullptr) return;
  next_tick_ = learner_->history().tick() + 1;
  learner_.reset();
}

}  // namespace pando
