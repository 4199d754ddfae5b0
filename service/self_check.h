#ifndef PANDO_SERVICE_SELF_CHECK_H_
#define PANDO_SERVICE_SELF_CHECK_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "core/prefix_cache.h"

namespace pando {

// Verifies the cache's invariants, on request or periodically; a violation is
// logged and counted, and never ends the process. Owned by Server; thread-safe.
class SelfCheck {
 public:
  // `cache` outlives this.
  explicit SelfCheck(PrefixCache* cache) : cache_(cache) {}

  // The violations found now.
  std::vector<std::string> Run();

  // All violations found so far.
  uint64_t violations() const { return violations_; }

 private:
  PrefixCache* const cache_;
  std::atomic<uint64_t> violations_ = 0;
};

}  // namespace pando

#endif  // PANDO_SERVICE_SELF_CHECK_H_
