#ifndef PANDO_CORE_EVICTION_CHANGING_ORDER_H_
#define PANDO_CORE_EVICTION_CHANGING_ORDER_H_

#include <memory>
#include <utility>

#include "core/eviction/eviction_policy.h"
#include "core/nodes/node.h"

namespace pando {

// The order of a quota class, and while the policy is changed the one that is
// to take its place, which is told of all changes, too. Owned by RadixTree; not
// thread-safe.
class ChangingOrder {
 public:
  // The order in use, from which victims come.
  EvictionPolicy& now() const { return *now_; }
  // The one that is filled; null when none is.
  EvictionPolicy* next() const { return next_.get(); }

  void Begin(std::unique_ptr<EvictionPolicy> next) { next_ = std::move(next); }
  // next() is in use from now on. Returns the order before, null at first.
  std::unique_ptr<EvictionPolicy> Use() {
    return std::exchange(now_, std::move(next_));
  }
  // Returns next(), which is not to be used.
  std::unique_ptr<EvictionPolicy> Stop() { return std::move(next_); }

  // The changes of EvictionPolicy.
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
