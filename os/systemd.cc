#include <systemd/sd-daemon.h>

#include <cstdint>

#include "os/service_manager.h"

namespace pando {

void TellServiceManager(const std::string& assignments) {
  sd_notify(/*unset_environment=*/0, assignments.c_str());
}

std::optional<absl::Duration> WatchdogTime() {
  uint64_t microseconds = 0;
  if (sd_watchdog_enabled(/*unset_environment=*/0, &microseconds) <= 0) {
    return std::nullopt;
  }
  return absl::Microseconds(microseconds);
}

}  // namespace pando
