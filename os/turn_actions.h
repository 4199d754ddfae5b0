#ifndef PANDO_OS_TURN_ACTIONS_H_
#define PANDO_OS_TURN_ACTIONS_H_

#include <functional>

#include "absl/time/time.h"

namespace pando {

// Runs an action in the turn (see Turn), soon after any thread has requested
// it, and never inside a handler. A second request before the action has begun
// changes nothing. Thread-safe.
class Wakeup {
 public:
  // Has no effect before the server starts and once it stops.
  virtual void Request() = 0;

 protected:
  ~Wakeup() = default;
};

// Requests a wakeup again and again. Thread-safe.
class Timer {
 public:
  // The time between two wakeups from now on; zero: no wakeups.
  virtual void SetPeriod(absl::Duration period) = 0;

 protected:
  ~Timer() = default;
};

// Where actions are registered that run in the turn. What it returns lives as
// long as it does. All are added before the server starts.
class TurnActions {
 public:
  // Runs `action` when any thread requests it.
  virtual Wakeup* AddWakeup(std::function<void()> action) = 0;
  // Runs `action` every `period` while the server runs.
  virtual Timer* AddTimer(absl::Duration period,
                          std::function<void()> action) = 0;

 protected:
  ~TurnActions() = default;
};

}  // namespace pando

#endif  // PANDO_OS_TURN_ACTIONS_H_
