#include "core/journal/event_log.h"

#include <algorithm>

namespace pando {
namespace {

// A log may name so many times the pages that the tree can hold, but no more
// than kLargeTreePages, or one time the tree's capacity if that is larger. With
// more, it is cheaper to drop the events and describe the whole tree anew.
constexpr size_t kMaxTreesWorth = 4;
constexpr size_t kLargeTreePages = size_t{1} << 22;

}  // namespace

EventLog::EventLog(uint32_t capacity_pages)
    : max_pages_(std::max<size_t>(
          capacity_pages,
          std::min(kLargeTreePages, kMaxTreesWorth * capacity_pages))) {}

void EventLog::Stop() {
  if (!is_on_) return;
  is_on_ = false;
  MakeGap();
}

void EventLog::Stored(const SegmentRef& segment, uint32_t first_page,
                      uint32_t page_count, PageId parent,
                      const std::shared_ptr<const NamespaceKey>& ns) {
  if (!is_keeping()) return;
  events_.emplace_back(
      PagesStored{segment, first_page, page_count, parent, ns});
  Count(page_count);
}

void EventLog::Removed(std::span<const PageId> pages, EvictionReason reason) {
  if (!is_keeping()) return;
  events_.emplace_back(
      PagesRemoved{std::vector<PageId>(pages.begin(), pages.end()), reason});
  Count(pages.size());
}

void EventLog::Hit(PageId last) {
  if (!is_keeping()) return;
  events_.emplace_back(PagesHit{last});
  Count(1);
}

void EventLog::Cleared() {
  if (is_keeping()) events_.emplace_back(AllCleared{});
}

void EventLog::Count(size_t pages) {
  pages_ += pages;
  if (pages_ > max_pages_) MakeGap();
}

void EventLog::MakeGap() {
  has_gap_ = true;
  pages_ = 0;
  events_ = {};
}

void EventLog::EndGap() {
  has_gap_ = false;
  events_.emplace_back(AllCleared{});
}

void EventLog::Take(std::vector<RawEvent>& events) {
  events.clear();
  events.swap(events_);
  pages_ = 0;
}

}  // namespace pando
