#include "core/match/page_steps.h"

#include <algorithm>

#include "base/status_macros.h"
#include "core/nodes/step_sizes.h"

namespace pando {

absl::Status ReserveMore(CacheParts& parts, Session& session,
                         uint32_t quota_class, uint32_t wanted,
                         std::vector<PageId>& pages) {
  const uint32_t next = std::min(wanted - static_cast<uint32_t>(pages.size()),
                                 kStepReservedPages);
  RETURN_IF_ERROR(parts.sessions.CheckMorePages(session, next));
  RETURN_IF_ERROR(parts.budget.CheckRoom(next, quota_class, 0));
  parts.budget.ReserveMore(next, quota_class, session.reserved, pages);
  return absl::OkStatus();
}

bool FreeLast(CacheParts& parts, Session& session,
              std::span<const PageId>& pages) {
  const size_t count = std::min<size_t>(pages.size(), kStepFreedPages);
  for (PageId page : pages.last(count)) {
    if (!parts.pool.IsReservedBy(session.reserved, page)) continue;
    parts.holdings.FreePage(session, page);
  }
  pages = pages.first(pages.size() - count);
  return pages.empty();
}

bool FreeLast(CacheParts& parts, Session& session, std::vector<PageId>& pages) {
  std::span<const PageId> left = pages;
  FreeLast(parts, session, left);
  pages.resize(left.size());
  return pages.empty();
}

absl::Status ListedPages::CheckMore(PagePool& pool, const PageOwner& owner,
                                    std::span<const PageId> pages) {
  RETURN_IF_ERROR(pool.CheckReserved(owner, pages));
  listed_.resize(pool.capacity());
  for (PageId page : pages) {
    if (listed_[page.value()]) return PagePool::ListedTwice(page);
    listed_[page.value()] = true;
  }
  return absl::OkStatus();
}

}  // namespace pando
