#ifndef PANDO_CORE_OPERATORS_EARLIER_PAGES_H_
#define PANDO_CORE_OPERATORS_EARLIER_PAGES_H_

#include <cstddef>
#include <cstdint>

#include "base/ids.h"
#include "core/parts/stepped_work.h"

namespace pando {

// Gives two sessions what workers of an earlier process may still use, and what
// no session has that SessionRecovery opened again: to one the pages that were
// reserved or in quarantine, as reserved pages, and to the other locks on the
// prefixes that were locked. Limits and quotas do not apply.
// It takes one step, before pandod serves calls.
class EarlierPages : public SteppedWork {
 public:
  EarlierPages(SessionId for_reserved, SessionId for_locks)
      : for_reserved_(for_reserved), for_locks_(for_locks) {}

  bool Step(CacheParts& parts) override;

  // The number of those pages, of those locks, and of all cached pages.
  size_t reserved() const { return reserved_; }
  size_t locks() const { return locks_; }
  uint32_t cached() const { return cached_; }

 private:
  const SessionId for_reserved_;
  const SessionId for_locks_;
  size_t reserved_ = 0;
  size_t locks_ = 0;
  uint32_t cached_ = 0;
};

}  // namespace pando

#endif  // PANDO_CORE_OPERATORS_EARLIER_PAGES_H_
