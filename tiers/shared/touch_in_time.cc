#include "tiers/shared/touch_in_time.h"

#include <memory>
#include <utility>

namespace pando {

absl::StatusOr<std::vector<bool>> TouchInTime(
    RemoteStore* store, DeadlineThreads& threads, std::vector<BlockKey> keys,
    absl::Time used, absl::Time deadline, absl::Duration timeout) {
  // The thread owns it together with the caller, who may give up the wait.
  struct Touch {
    const std::vector<BlockKey> keys;
    absl::StatusOr<std::vector<bool>> present;
  };
  const auto touch = std::make_shared<Touch>(
      Touch{std::move(keys), DeadlineThreads::Timeout()});
  const bool is_in_time =
      threads.Run({[store, touch, used, deadline] {
                    touch->present = store->Touch(touch->keys, used, deadline);
                  }},
                  timeout);
  if (!is_in_time) return DeadlineThreads::Timeout();
  return std::move(touch->present);
}

}  // namespace pando
