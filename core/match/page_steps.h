#ifndef PANDO_CORE_MATCH_PAGE_STEPS_H_
#define PANDO_CORE_MATCH_PAGE_STEPS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "base/ids.h"
#include "core/parts/cache_parts.h"
#include "core/sessions/session_table.h"

namespace pando {

// Work of calls on many pages, some in each step.

// The session is about to reserve so many more pages in steps: none of them
// copies the list of all that it has.
inline void MakeListRoom(Session& session, size_t pages) {
  session.reserved.pages.reserve(session.reserved.pages.size() + pages);
}

// Reserves the next pages, of the `wanted` that `pages` is to have, for a call
// that has begun to reserve them. An error changes nothing.
absl::Status ReserveMore(CacheParts& parts, Session& session,
                         uint32_t quota_class, uint32_t wanted,
                         std::vector<PageId>& pages);

// Frees the last of `pages`, if the session still has them, and takes them off.
// Returns whether none is left.
bool FreeLast(CacheParts& parts, Session& session, std::vector<PageId>& pages);
bool FreeLast(CacheParts& parts, Session& session,
              std::span<const PageId>& pages);

// Checks that a session has reserved the pages that a call lists, and that none
// is listed twice.
class ListedPages {
 public:
  // The next pages. PAGE_OUT_OF_RANGE, PAGE_NOT_OWNED or DUPLICATE_PAGE.
  absl::Status CheckMore(PagePool& pool, const PageOwner& owner,
                         std::span<const PageId> pages);

 private:
  std::vector<bool> listed_;  // by page
};

}  // namespace pando

#endif  // PANDO_CORE_MATCH_PAGE_STEPS_H_
