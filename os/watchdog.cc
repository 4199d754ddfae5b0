#include "os/watchdog.h"

#include <utility>

namespace pando {

void Watchdog::GiveSign() {
  if (!time_.has_value()) return;
  const uint64_t turns = turns_();
  if (std::exchange(seen_turns_, turns) != turns) {
    TellServiceManager("WATCHDOG=1");
  }
}

}  // namespace pando
