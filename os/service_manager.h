#ifndef PANDO_OS_SERVICE_MANAGER_H_
#define PANDO_OS_SERVICE_MANAGER_H_

#include <optional>
#include <string>

#include "absl/time/time.h"

namespace pando {

// Sends assignments as in sd_notify(3), one a line, to the service manager that
// started the process (systemd, or a program that speaks its protocol). Has no
// effect when there is none. The protocol is a datagram; libsystemd, which
// speaks it, too, brings five libraries that pandod has no use for. A
// `descriptor` goes along, and stays the caller's; -1: none. False: a manager
// that does not read its messages has not taken this one for some seconds.
bool TellServiceManager(const std::string& assignments, int descriptor = -1);
// Whether there is one.
bool HasServiceManager();

// How soon after the last sign of life, "WATCHDOG=1", it kills the process;
// none: never.
std::optional<absl::Duration> WatchdogTime();

}  // namespace pando

#endif  // PANDO_OS_SERVICE_MANAGER_H_
