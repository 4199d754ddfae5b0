#ifndef PANDO_SERVICE_SELF_CHECK_H_
#define PANDO_SERVICE_SELF_CHECK_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "core/prefix_cache.h"

namespace pando {

// Verifies the cache's invariants step by step, on request or periodically. A
// violation is logged and counted, and never ends the process. There is one
// check at a time: all callers that want a check take steps of the same one.
//
// Owned by Server; used in the turn, except for violations().
class SelfCheck {
 public:
  // `cache` outlives this.
  explicit SelfCheck(PrefixCache* cache) : cache_(cache) {}

  // Takes a step of the check that is under way, or begins one. Returns whether
  // that was its last step.
  bool Step();

  // Return how many checks have begun, and how many have ended.
  uint64_t begun() const { return begun_; }
  uint64_t ended() const { return ended_; }
  // The violations that the last complete check found.
  const std::vector<std::string>& last_violations() const {
    return last_violations_;
  }

  // Returns the number of all violations found so far. Thread-safe.
  uint64_t violations() const { return violations_; }

 private:
  PrefixCache* const cache_;
  uint64_t begun_ = 0;
  uint64_t ended_ = 0;
  std::vector<std::string> last_violations_;
  std::atomic<uint64_t> violations_ = 0;
};

}  // namespace pando

#endif  // PANDO_SERVICE_SELF_CHECK_H_
