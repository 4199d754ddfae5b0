// In the place of systemd.cc where there is no libsystemd.
#include "os/service_manager.h"

namespace pando {

void TellServiceManager(const std::string&) {}

std::optional<absl::Duration> WatchdogTime() { return std::nullopt; }

}  // namespace pando
