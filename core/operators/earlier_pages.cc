#include "core/operators/earlier_pages.h"

#include <vector>

namespace pando {

bool EarlierPages::Step(CacheParts& parts) {
  const absl::StatusOr<Session*> reserved = parts.sessions.Get(for_reserved_);
  const absl::StatusOr<Session*> locks = parts.sessions.Get(for_locks_);
  if (!reserved.ok() || !locks.ok()) return true;
  parts.pool.TakeEarlier((*reserved)->reserved);
  reserved_ = (*reserved)->reserved.pages.size();
  const auto locked = parts.tree.TakeEarlierLocked();
  for (const auto& [node, pages] : locked) {
    parts.holdings.TakeLock(**locks, *node);
  }
  for (const auto& [node, pages] : locked) node->segment.NoteUnlocked(pages);
  parts.sessions.ForgetEarlierLocks();
  locks_ = locked.size();
  cached_ = parts.pool.count(PageState::kSealed);
  return true;
}

}  // namespace pando
