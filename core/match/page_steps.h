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

// Helpers of calls with many pages, which handle some pages in each step.

// Makes room in the session's list for `pages` more pages that it will reserve
// in steps, so that no step has to copy the list to let it grow.
inline void MakeListRoom(Session& session, size_t pages) {
  session.reserved.pages.reserve(session.reserved.pages.size() + pages);
}

// Reserves one step's worth of pages, until `pages` has `wanted` pages, for a
// call that has begun to reserve them. An error changes nothing.
absl::Status ReserveMore(CacheParts& parts, Session& session,
                         uint32_t quota_class, uint32_t wanted,
                         std::vector<PageId>& pages);

// Takes some pages off the end of `pages` and frees those that the session
// still has. Returns whether `pages` is empty.
bool FreeLast(CacheParts& parts, Session& session, std::vector<PageId>& pages);
bool FreeLast(CacheParts& parts, Session& session,
              std::span<const PageId>& pages);

// Checks that a session has reserved the pages that a call lists, and that none
// is listed twice.
class ListedPages {
 public:
  // Checks the next pages. PAGE_OUT_OF_RANGE, PAGE_NOT_OWNED or DUPLICATE_PAGE.
  absl::Status CheckMore(PagePool& pool, const PageOwner& owner,
                         std::span<const PageId> pages);

 private:
  std::vector<bool> listed_;  // by page
};

}  // namespace pando

#endif  // PANDO_CORE_MATCH_PAGE_STEPS_H_
