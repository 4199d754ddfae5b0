#ifndef PANDO_OS_WATCHDOG_H_
#define PANDO_OS_WATCHDOG_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "absl/time/time.h"
#include "os/service_manager.h"

namespace pando {

// Tells the service manager's watchdog that the process is alive, as long as
// the polling thread makes progress: when that thread is stuck, the signs of
// life stop. Owned by main and used on its thread.
class Watchdog {
 public:
  // `turns` returns a count that goes up as long as the polling thread works.
  explicit Watchdog(std::function<uint64_t()> turns)
      : turns_(std::move(turns)) {}

  // GiveSign must be called at least this often.
  absl::Duration period() const {
    return time_.has_value() ? *time_ / 4 : absl::Hours(1);
  }
  // Sends "WATCHDOG=1" if the polling thread has worked since the last call.
  void GiveSign();

 private:
  const std::function<uint64_t()> turns_;
  const std::optional<absl::Duration> time_ = WatchdogTime();
  uint64_t seen_turns_ = 0;
};

}  // namespace pando

#endif  // PANDO_OS_WATCHDOG_H_
