#include "core/page_pool.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "core/errors.h"

namespace pando {

PagePool::PagePool(uint32_t capacity, uint32_t quota_classes)
    : records_(capacity), first_free_(1), reserved_(quota_classes) {
  CHECK(capacity >= 2);
  records_[0].state = PageState::kPadding;
  counts_[static_cast<size_t>(PageState::kPadding)] = 1;
  counts_[static_cast<size_t>(PageState::kFree)] = capacity - 1;
  for (uint32_t id = 1; id + 1 < capacity; ++id) records_[id].position = id + 1;
}

void PagePool::Reserve(uint32_t n, uint32_t quota_class, PageOwner& owner,
                       std::vector<PageId>& out) {
  CHECK(n <= count(PageState::kFree));
  reserved_[quota_class] += n;
  for (uint32_t i = 0; i < n; ++i) {
    const PageId page(first_free_);
    PageRecord& record = Record(page);
    first_free_ = record.position;
    Move(record, PageState::kReserved);
    record.quota_class = static_cast<uint16_t>(quota_class);
    record.position = static_cast<uint32_t>(owner.pages.size());
    owner.pages.push_back(page);
    out.push_back(page);
  }
}

void PagePool::Release(PageOwner& owner, PageId page) {
  TakeFromOwner(owner, page);
  PushFree(page);
}

void PagePool::Seal(PageOwner& owner, PageId page) {
  TakeFromOwner(owner, page);
  PageRecord& record = Record(page);
  ++record.generation;
  Move(record, PageState::kSealed);
}

void PagePool::FreeSealed(std::span<const PageId> pages) {
  for (PageId page : pages) {
    CHECK(state(page) == PageState::kSealed);
    PushFree(page);
  }
}

std::vector<PageId> PagePool::Quarantine(PageOwner& owner) {
  for (PageId page : owner.pages) {
    --reserved_[Record(page).quota_class];
    Move(Record(page), PageState::kQuarantined);
  }
  return std::exchange(owner.pages, {});
}

void PagePool::FreeQuarantined(std::span<const PageId> pages) {
  for (PageId page : pages) {
    CHECK(state(page) == PageState::kQuarantined);
    PushFree(page);
  }
}

absl::Status PagePool::CheckReserved(const PageOwner& owner,
                                     std::span<const PageId> pages) {
  absl::Status status;
  size_t marked = 0;
  for (; marked < pages.size(); ++marked) {
    status = CheckAndMark(owner, pages[marked]);
    if (!status.ok()) break;
  }
  for (PageId page : pages.first(marked)) Record(page).is_marked = false;
  return status;
}

absl::Status PagePool::CheckAndMark(const PageOwner& owner, PageId page) {
  if (!IsInRange(page)) {
    return MakeError(
        Reason::kPageOutOfRange,
        absl::StrCat("page id ", page.value(), " is not in 1..", capacity() - 1,
                     page == kPaddingPage ? " (page 0 is padding)" : ""));
  }
  if (!IsReservedBy(owner, page)) {
    return MakeError(Reason::kPageNotOwned,
                     absl::StrCat("page ", page.value(),
                                  " is not reserved by this session"));
  }
  if (std::exchange(Record(page).is_marked, true)) {
    return MakeError(Reason::kDuplicatePage,
                     absl::StrCat("page ", page.value(), " is listed twice"));
  }
  return absl::OkStatus();
}

void PagePool::Move(PageRecord& record, PageState to) {
  --counts_[static_cast<size_t>(record.state)];
  ++counts_[static_cast<size_t>(to)];
  record.state = to;
}

void PagePool::PushFree(PageId page) {
  PageRecord& record = Record(page);
  ++record.generation;
  Move(record, PageState::kFree);
  record.position = first_free_;
  first_free_ = page.value();
}

// The last page of the list takes the place of the one that leaves.
void PagePool::TakeFromOwner(PageOwner& owner, PageId page) {
  CHECK(IsReservedBy(owner, page));
  --reserved_[Record(page).quota_class];
  const uint32_t position = Record(page).position;
  const PageId last = owner.pages.back();
  owner.pages[position] = last;
  Record(last).position = position;
  owner.pages.pop_back();
}

void PagePool::AppendViolations(std::vector<std::string>& violations) const {
  std::array<uint32_t, kPageStates> counted{};
  std::vector<uint32_t> reserved(reserved_.size());
  for (uint32_t id = 0; id < capacity(); ++id) {
    const PageRecord& record = records_[id];
    ++counted[static_cast<size_t>(record.state)];
    if (record.state == PageState::kReserved) ++reserved[record.quota_class];
    if (record.is_marked) {
      violations.push_back(absl::StrCat("pool: page ", id, " is left marked"));
    }
  }
  if (counted != counts_ || reserved != reserved_) {
    violations.push_back("pool: the counts by state or class are wrong");
  }
  uint32_t chained = 0;
  for (uint32_t id = first_free_; id != 0; id = records_[id].position) {
    if (++chained > count(PageState::kFree)) break;
    if (records_[id].state != PageState::kFree) {
      violations.push_back(absl::StrCat("pool: page ", id,
                                        " is in the free chain, but not free"));
    }
  }
  if (chained != count(PageState::kFree)) {
    violations.push_back(absl::StrCat("pool: ", chained,
                                      " pages in the free chain, but ",
                                      count(PageState::kFree), " are free"));
  }
}

}  // namespace pando
