#ifndef PANDO_TIERS_SHARED_TOUCH_IN_TIME_H_
#define PANDO_TIERS_SHARED_TOUCH_IN_TIME_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tiers/shared/deadline_threads.h"
#include "tiers/shared/remote_store.h"

namespace pando {

// Calls RemoteStore::Touch on one of `threads`, with this deadline, and waits
// for it at most for `timeout`. Returns what it returns, or
// DeadlineThreads::Timeout(). `store` must outlive the threads.
absl::StatusOr<std::vector<bool>> TouchInTime(
    RemoteStore* store, DeadlineThreads& threads, std::vector<BlockKey> keys,
    absl::Time used, absl::Time deadline, absl::Duration timeout);

}  // namespace pando

#endif  // PANDO_TIERS_SHARED_TOUCH_IN_TIME_H_
