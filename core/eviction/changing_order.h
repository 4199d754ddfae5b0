#ifndef PANDO_CORE_EVICTION_CHANGING_ORDER_H_
#define PANDO_CORE_EVICTION_CHANGING_ORDER_H_

#include <memory>
#include <utility>

#include "core/eviction/eviction_policy.h"
#include "core/nodes/node.h"

namespace pando {

// The order of eviction of a quota class. While the policy is being changed,
// also the order that will take its place; every change goes to both. Owned by
// RadixTree; not thread-safe.
class ChangingOrder {
 public:
  // The order in use, from which victims come.
  EvictionPolicy& now() const { return *now_; }
  // The order that is being filled; null if there is none.
  EvictionPolicy* next() const { return next_.get(); }

  void Begin(std::unique_ptr<EvictionPolicy> next) { next_ = std::move(next); }
  // Puts next() into use. Returns the order used before; null the first time.
  std::unique_ptr<EvictionPolicy> Use() {
    return std::exchange(now_, std::move(next_));
  }
  // Drops next() and returns it, without putting it into use.
  std::unique_ptr<EvictionPolicy> Stop() { return std::move(next_); }

  // Pass changes on to both orders; see EvictionPolicy.
  void Add(Node& node) {
    now_->Add(node);
    if (next_ != nullptr) next_->Add(node);
  }
  void Remove(Node& node) {
    now_->Remove(node);
    if (next_ != nullptr) next_->Remove(node);
  }
  void AddFront(Node& front, Node& back) {
    now_->AddFront(front, back);
    if (next_ != nullptr) next_->AddFront(front, back);
  }
  void LeafChanged(Node& node) {
    now_->LeafChanged(node);
    if (next_ != nullptr) next_->LeafChanged(node);
  }
  void BeforeUse(Node& node) {
    now_->BeforeUse(node);
    if (next_ != nullptr) next_->BeforeUse(node);
  }
  void AfterUse(Node& node) {
    now_->AfterUse(node);
    if (next_ != nullptr) next_->AfterUse(node);
  }

 private:
  std::unique_ptr<EvictionPolicy> now_;
  std::unique_ptr<EvictionPolicy> next_;
};

}  // namespace pando

#endif  // PANDO_CORE_EVICTION_CHANGING_ORDER_H_
