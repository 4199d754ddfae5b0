#ifndef PANDO_CORE_OPERATORS_REST_RESERVATION_H_
#define PANDO_CORE_OPERATORS_REST_RESERVATION_H_

#include <algorithm>
#include <vector>

#include "base/ids.h"
#include "core/nodes/page_pool.h"
#include "core/parts/stepped_work.h"

namespace pando {

// Reserves all free pages for one session. Limits and quotas do not apply. It
// keeps these pages for processes that have mapped the pool since before this
// cache was made and may still write to them.
class RestReservation : public SteppedWork {
 public:
  explicit RestReservation(SessionId session) : session_(session) {}

  bool Step(CacheParts& parts) override {
    const absl::StatusOr<Session*> session = parts.sessions.Get(session_);
    if (!session.ok()) return true;
    constexpr uint32_t kAnyClass = 0;
    std::vector<PageId> pages;
    parts.pool.Reserve(
        std::min(parts.pool.count(PageState::kFree), kStepReservedPages),
        kAnyClass, (*session)->reserved, pages);
    return parts.pool.count(PageState::kFree) == 0;
  }

 private:
  const SessionId session_;
};

}  // namespace pando

#endif  // PANDO_CORE_OPERATORS_REST_RESERVATION_H_
