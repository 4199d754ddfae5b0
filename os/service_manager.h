#ifndef PANDO_OS_SERVICE_MANAGER_H_
#define PANDO_OS_SERVICE_MANAGER_H_

#include <optional>
#include <string>

#include "absl/time/time.h"

namespace pando {

// Sends assignments as in sd_notify(3), one on each line, to the service
// manager that started the process (systemd, or a program that speaks its
// protocol). Has no effect if there is none. A `descriptor` goes along unless
// it is -1; it stays the caller's. Returns false if the manager does not read
// its messages: it has not taken this one for five seconds.
//
// The protocol is one datagram. libsystemd, which speaks it too, would bring
// five libraries that pandod has no use for.
bool TellServiceManager(const std::string& assignments, int descriptor = -1);
// Returns whether there is a service manager.
bool HasServiceManager();

// Returns the time after the last sign of life, "WATCHDOG=1", at which the
// service manager kills this process; none if it never does.
std::optional<absl::Duration> WatchdogTime();

}  // namespace pando

#endif  // PANDO_OS_SERVICE_MANAGER_H_
