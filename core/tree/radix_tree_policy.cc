// How the policy of RadixTree is changed: new orders are filled in steps, take
// the place of the old ones, and these are taken down in steps.

#include <limits>
#include <utility>

#include "core/eviction/filling_lru.h"
#include "core/eviction/ranked_policy.h"
#include "core/nodes/preorder.h"
#include "core/tree/make_eviction_policy.h"
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
  } else if (wanted_ == EvictionPolicyKind::kReuse) {
    SetPolicyAtOnce(wanted_);
  } else {
    BeginFilling();
  }
  return false;
}

void RadixTree::SetPolicy(EvictionPolicyKind policy) {
  BeginPolicy(policy);
  while (!StepPolicy(std::numeric_limits<uint32_t>::max())) continue;
}

// Two orders of links cannot be there at once: on the way from reuse to lru,
// the leaves are ranked, which evicts as lru does.
void RadixTree::BeginFilling() {
  filling_ =
      Filling{.policy = wanted_, .is_linked = IsLinked(wanted_) && !is_linked_};
  for (ClassState& c : classes_) {
    if (filling_->is_linked) {
      c.order.Begin(std::make_unique<FillingLru>(&nodes_));
    } else {
      c.order.Begin(std::make_unique<RankedPolicy>(wanted_));
    }
  }
}

void RadixTree::FillOrders(uint32_t nodes) {
  if (filling_->policy != wanted_) {  // another change has come
    TakeDown(&ChangingOrder::Stop, filling_->is_linked);
    filling_.reset();
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

// Takes from each class an order that is not needed any more. One that is small
// goes at once, so that no learner tells it of anything.
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

// Removes the links that an order has left in the nodes. None is in use.
void RadixTree::Unlink(uint32_t nodes) {
  for (; nodes > 0 && *unlinking_ < nodes_.cells(); --nodes) {
    Node* const node = nodes_.FindAt((*unlinking_)++);
    if (node != nullptr) node->older = node->newer = nullptr;
  }
  if (*unlinking_ == nodes_.cells()) unlinking_.reset();
}

void RadixTree::DropUnusedLearner() {
  if (reuse_.learns_always || policy_ == EvictionPolicyKind::kReuse) return;
  if (learner_ == nullptr) return;
  next_tick_ = learner_->history().tick() + 1;
  learner_.reset();
}

// REQUIRES: no change is under way.
void RadixTree::SetPolicyAtOnce(EvictionPolicyKind policy) {
  std::vector<std::vector<Node*>> unlocked(classes_.size());
  nodes_.ForEach([&](Node& node) {
    node.older = node.newer = nullptr;
    if (!node.is_root() && !node.is_locked()) {
      unlocked[node.ns->quota_class].push_back(&node);
    }
  });
  policy_ = wanted_ = policy;
  if (learner_ == nullptr &&
      (reuse_.learns_always || policy == EvictionPolicyKind::kReuse)) {
    MakeLearner();
  }
  for (uint32_t c = 0; c < classes_.size(); ++c) {
    classes_[c].order.Begin(
        MakeEvictionPolicy(policy, std::move(unlocked[c]), learner_.get(), c));
  }
  TakeDown(&ChangingOrder::Use, /*is_linked=*/false);
  is_linked_ = IsLinked(policy);
}

// Nodes that are cached already count as used as often as they were inserted,
// and last in this order.
void RadixTree::MakeLearner() {
  learner_ = std::make_unique<ReuseLearner>(
      ReuseLearner::Options{
          .page_tokens = page_tokens_,
          .capacity_pages = max_pages_,
          .quota_classes = static_cast<uint32_t>(classes_.size()),
          .warmup_ticks = reuse_.warmup_ticks,
          .first_tick = next_tick_},
      &nodes_);
  std::vector<Node*> nodes;
  ForEachNamespace([&](Namespace& ns) {
    learner_->AddRoot(*ns.root);
    for (const Node* n = ns.root;
         (n = NextInPreorder(*ns.root, *n)) != nullptr;) {
      Node& node = *nodes_.FindAt(Slab<Node>::IndexOf(*n));
      learner_->HashNode(node);
      nodes.push_back(&node);
    }
  });
  SortByLastUse(nodes);
  for (Node* node : nodes) learner_->AddCached(*node);
}

}  // namespace pando
