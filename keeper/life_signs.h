#ifndef PANDO_KEEPER_LIFE_SIGNS_H_
#define PANDO_KEEPER_LIFE_SIGNS_H_

#include <algorithm>
#include <chrono>
#include <optional>
#include <string_view>

#include "keeper/back_off.h"

namespace pando::keeper {

// Judges by the messages of pandod whether it hangs: whether it is ready, and
// has not said "WATCHDOG=1" for as long as the limit. It has a minute more
// while it reads its options again, and is not judged while it starts or stops;
// it says when it does.
class LifeSigns {
 public:
  using Clock = BackOff::Clock;

  // A limit of 0: it is never judged.
  explicit LifeSigns(std::chrono::seconds limit) : limit_(limit) {}

  std::chrono::seconds limit() const { return limit_; }
  // Another process begins.
  void Begin() {
    last_.reset();
    is_stopping_ = false;
  }
  // Takes a message, which has one line for each thing that it says.
  void Take(std::string_view message, Clock::time_point now) {
    if (Says(message, "STOPPING=1")) is_stopping_ = true;
    if (Says(message, "RELOADING=1")) last_ = now + kReload;
    if (Says(message, "READY=1") || Says(message, "WATCHDOG=1")) last_ = now;
  }
  // When it will hang unless it gives a sign; none while it is not judged.
  std::optional<Clock::time_point> deadline() const {
    if (!last_.has_value() || is_stopping_ || limit_.count() == 0) {
      return std::nullopt;
    }
    return *last_ + limit_;
  }
  // The keeper itself did not run for a while, so pandod may not have run
  // either: the limit begins anew.
  void Excuse(Clock::time_point now) {
    if (last_.has_value()) last_ = std::max(*last_, now);
  }

 private:
  static bool Says(std::string_view message, std::string_view line) {
    for (size_t at = 0; at <= message.size();) {
      const size_t end = std::min(message.find('\n', at), message.size());
      if (message.substr(at, end - at) == line) return true;
      at = end + 1;
    }
    return false;
  }

  static constexpr std::chrono::seconds kReload{60};

  const std::chrono::seconds limit_;
  std::optional<Clock::time_point> last_;
  bool is_stopping_ = false;
};

}  // namespace pando::keeper

#endif  // PANDO_KEEPER_LIFE_SIGNS_H_
