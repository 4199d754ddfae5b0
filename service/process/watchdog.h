#ifndef PANDO_SERVICE_PROCESS_WATCHDOG_H_
#define PANDO_SERVICE_PROCESS_WATCHDOG_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "absl/time/time.h"
#include "service/process/service_manager.h"

namespace pando {

// Gives the service manager signs of life while the polling thread gives them.
// Owned by main, whose thread is another: a polling thread that is stuck is
// seen by the signs that stay away.
class Watchdog {
 public:
  // `turns` counts up as long as the polling thread turns.
  explicit Watchdog(std::function<uint64_t()> turns)
      : turns_(std::move(turns)) {}

  // How often GiveSign is to be called, at least. No hurry without a watchdog.
  absl::Duration period() const {
    return time_.has_value() ? *time_ / 4 : absl::Hours(1);
  }
  // Gives a sign if the polling thread has turned since the last call.
  void GiveSign();

 private:
  const std::function<uint64_t()> turns_;
  const std::optional<absl::Duration> time_ = WatchdogTime();
  uint64_t seen_turns_ = 0;
};

}  // namespace pando

#endif  // PANDO_SERVICE_PROCESS_WATCHDOG_H_
