#ifndef PANDO_OS_TURN_ACTIONS_H_
#define PANDO_OS_TURN_ACTIONS_H_

#include <functional>

#include "absl/time/time.h"

namespace pando {

// Runs an action in the turn (see Turn), soon after any thread has requested
// it, and never inside a handler. A second request before the action has begun
// has no effect. Thread-safe.
class Wakeup {
 public:
  // Requests that the action runs. Has no effect before the server starts, and
  // once it stops.
  virtual void Request() = 0;

 protected:
  ~Wakeup() = default;
};

// Requests a wakeup again and again. Thread-safe.
class Timer {
 public:
  // Sets the time between two wakeups from now on; zero: no wakeups.
  virtual void SetPeriod(absl::Duration period) = 0;

 protected:
  ~Timer() = default;
};

// Registers actions that run in the turn. All actions are added before the
// server starts. The objects that it returns live as long as it does.
class TurnActions {
 public:
  // Runs `action` when any thread requests it.
  virtual Wakeup* AddWakeup(std::function<void()> action) = 0;
  // Runs `action` every `period` while the server runs; zero: not before
  // SetPeriod.
  virtual Timer* AddTimer(absl::Duration period,
                          std::function<void()> action) = 0;

 protected:
  ~TurnActions() = default;
};

}  // namespace pando

#endif  // PANDO_OS_TURN_ACTIONS_H_
