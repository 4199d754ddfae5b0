#ifndef PANDO_SERVICE_RPC_STEP_H_
#define PANDO_SERVICE_RPC_STEP_H_

#include <functional>
#include <utility>

#include "service/rpc/event.h"

namespace pando {

// An event that calls a function. A streaming call has one Step for each kind
// of operation.
class Step : public Event {
 public:
  explicit Step(std::function<void(bool ok)> action)
      : action_(std::move(action)) {}
  void Run(bool ok) override { action_(ok); }

 private:
  const std::function<void(bool ok)> action_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_RPC_STEP_H_
