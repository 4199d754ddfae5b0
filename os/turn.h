#ifndef PANDO_OS_TURN_H_
#define PANDO_OS_TURN_H_

#include <functional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "os/fair_mutex.h"

namespace pando {

// The turn, in which one handler runs at a time. Handlers, and what they keep
// between calls, have no locks of their own. Instead, a thread takes the turn
// before it runs a handler or touches what handlers keep. A turn takes
// microseconds and never blocks. After it, the thread goes that has waited
// longest.
//
// Owned by CallPolicy, or by a test. Configure it before the first turn.
class Turn {
 public:
  // Sets what AfterHandler runs, in the turn: `action`.
  void set_after_handler(std::function<void()> action) {
    after_handler_ = std::move(action);
  }

  FairMutex& mutex() ABSL_LOCK_RETURNED(mutex_) { return mutex_; }

  // To be called in the turn when a handler has returned, before its caller
  // gets the answer, and at the end of other turns that hand out or publish
  // pages (Mover).
  void AfterHandler() const {
    if (after_handler_) after_handler_();
  }

 private:
  FairMutex mutex_;
  std::function<void()> after_handler_;
};

}  // namespace pando

#endif  // PANDO_OS_TURN_H_
