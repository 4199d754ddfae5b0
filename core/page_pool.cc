#include "core/page_pool.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "core/cache_audit.h"
#include "core/errors.h"

namespace pando {

PagePool::PagePool(uint32_t capacity, uint32_t quota_classes)
    : records_(capacity), reserved_(quota_classes) {
  CHECK(capacity >= 2);
  records_[0].state = PageState::kPadding;
  counts_[static_cast<size_t>(PageState::kPadding)] = 1;
  counts_[static_cast<size_t>(PageState::kFree)] = capacity - 1;
  free_.reserve(capacity - 1);
  for (uint32_t id = capacity - 1; id > 0; --id) {
    records_[id].position = static_cast<uint32_t>(free_.size());
    free_.emplace_back(id);
  }
}

void PagePool::Reserve(uint32_t n, uint32_t quota_class, PageOwner& owner,
                       std::vector<PageId>& out) {
  CHECK(n <= count(PageState::kFree));
  for (uint32_t i = 0; i < n; ++i) {
    const PageId page = free_.back();
    free_.pop_back();
    PageRecord& record = Record(page);
    record.quota_class = static_cast<uint16_t>(quota_class);
    Move(page, PageState::kReserved);
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
  ++Record(page).generation;
  Move(page, PageState::kSealed);
}

void PagePool::FreeSealed(std::span<const PageId> pages) {
  for (PageId page : pages) {
    CHECK(state(page) == PageState::kSealed);
    PushFree(page);
  }
}

std::vector<PageId> PagePool::Quarantine(PageOwner& owner) {
  for (PageId page : owner.pages) Move(page, PageState::kQuarantined);
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

void PagePool::Move(PageId page, PageState to) {
  PageRecord& record = Record(page);
  const bool is_audited = audit_ != nullptr && audit_->HasCounted(page);
  if (is_audited) audit_->Remove(record.state, record.quota_class);
  --counts_[static_cast<size_t>(record.state)];
  ++counts_[static_cast<size_t>(to)];
  if (record.state == PageState::kReserved) --reserved_[record.quota_class];
  if (to == PageState::kReserved) ++reserved_[record.quota_class];
  record.state = to;
  if (is_audited) audit_->Add(record.state, record.quota_class);
}

void PagePool::PushFree(PageId page) {
  ++Record(page).generation;
  Move(page, PageState::kFree);
  Record(page).position = static_cast<uint32_t>(free_.size());
  free_.push_back(page);
}

// The last page of the list takes the place of the one that leaves.
void PagePool::TakeFromOwner(PageOwner& owner, PageId page) {
  CHECK(IsReservedBy(owner, page));
  const uint32_t position = Record(page).position;
  const PageId last = owner.pages.back();
  owner.pages[position] = last;
  Record(last).position = position;
  owner.pages.pop_back();
}

void PagePool::AppendViolations(PageId page,
                                std::vector<std::string>& violations) const {
  const PageRecord& record = Record(page);
  if (record.is_marked) {
    violations.push_back(
        absl::StrCat("pool: page ", page.value(), " is left marked"));
  }
  const bool is_listed =
      record.position < free_.size() && free_[record.position] == page;
  if (record.state == PageState::kFree && !is_listed) {
    violations.push_back(absl::StrCat("pool: page ", page.value(),
                                      " is free, but not listed as that"));
  }
}

}  // namespace pando
