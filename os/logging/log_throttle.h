#ifndef PANDO_OS_LOGGING_LOG_THROTTLE_H_
#define PANDO_OS_LOGGING_LOG_THROTTLE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "os/logging/log_level.h"

namespace pando {

// Lets the same words into the log at most kPerSecond times in a second, and
// counts the events that it keeps out. The words are constants of the program,
// so there are few to remember. Thread-safe.
class LogThrottle {
 public:
  static constexpr uint32_t kPerSecond = 10;

  // How many events with the same words were kept out.
  struct KeptOut {
    LogLevel level;  // the level of the last one
    std::string words;
    uint64_t count;
  };

  // Returns none if the event is to be kept out. Otherwise returns how many
  // events with the same words were kept out since the last one that was let
  // in.
  std::optional<uint64_t> Admit(LogLevel level, absl::string_view words,
                                absl::Time now);
  // Returns the counts of seconds that are over, and forgets them: Admit does
  // not return them any more.
  std::vector<KeptOut> TakeKeptOut(absl::Time now);

 private:
  struct Repeats {
    // Returns whether the second is over. If the clock was set back, a new
    // second begins, too.
    bool IsOver(absl::Time now) const {
      return absl::AbsDuration(now - second) >= absl::Seconds(1);
    }

    LogLevel level = LogLevel::kDebug;
    absl::Time second = absl::InfinitePast();  // when the present second began
    uint32_t admitted = 0;                     // let in during that second
    uint64_t kept_out = 0;
  };

  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, Repeats> repeats_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pando

#endif  // PANDO_OS_LOGGING_LOG_THROTTLE_H_
