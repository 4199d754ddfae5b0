#include "core/nodes/page_pool.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/ledger.h"
#include "core/nodes/cache_audit.h"
#include "core/requests/errors.h"

namespace pando {

PagePool::PagePool(uint32_t capacity, uint32_t quota_classes,
                   std::span<PageRecord> ledger, bool is_of_before)
    : own_records_(ledger.empty() ? capacity : 0),
      records_(ledger.empty() ? std::span(own_records_) : ledger),
      reserved_(quota_classes) {
  CHECK(capacity >= 2 && records_.size() == capacity);
  counts_[static_cast<size_t>(PageState::kPadding)] = 1;
  free_.reserve(capacity - 1);
  records_[0].state = PageState::kPadding;
  if (is_of_before) return;
  for (uint32_t id = capacity - 1; id > 0; --id) {
    records_[id].state = PageState::kFree;
    AddFree(PageId(id));
  }
}

void PagePool::AddFree(PageId page) {
  Record(page).position = static_cast<uint32_t>(free_.size());
  free_.push_back(page);
  ++counts_[static_cast<size_t>(PageState::kFree)];
}

void PagePool::Recover(const std::vector<bool>& is_cached) {
  for (uint32_t id = capacity() - 1; id > 0; --id) {
    const PageId page(id);
    PageRecord& record = Record(page);
    record.is_marked = false;
    if (is_cached[id]) {
      record.state = PageState::kSealed;
      ++counts_[static_cast<size_t>(PageState::kSealed)];
    } else if (record.state == PageState::kFree) {
      AddFree(page);
    } else {
      earlier_.push_back(page);
    }
  }
}

void PagePool::TakeReserved(std::span<PageOwner* const> owners) {
  std::erase_if(earlier_, [&](PageId page) {
    const PageRecord& record = Record(page);
    if (record.state != PageState::kReserved || record.owner >= owners.size() ||
        owners[record.owner] == nullptr) {
      return false;
    }
    const bool has_class = record.quota_class < reserved_.size();
    TakeOver(*owners[record.owner], page, has_class ? record.quota_class : 0);
    return true;
  });
}

void PagePool::TakeEarlier(PageOwner& owner) {
  for (PageId page : std::exchange(earlier_, {})) TakeOver(owner, page, 0);
}

void PagePool::TakeOver(PageOwner& owner, PageId page, uint16_t quota_class) {
  PageRecord& record = Record(page);
  record.owner = owner.ledger_cell;
  record.quota_class = quota_class;
  record.position = static_cast<uint32_t>(owner.pages.size());
  StoresBefore();
  record.state = PageState::kReserved;
  owner.pages.push_back(page);
  ++counts_[static_cast<size_t>(PageState::kReserved)];
  ++reserved_[quota_class];
}

void PagePool::Reserve(uint32_t n, uint32_t quota_class, PageOwner& owner,
                       std::vector<PageId>& out) {
  CHECK(n <= count(PageState::kFree));
  for (uint32_t i = 0; i < n; ++i) {
    const PageId page = free_.back();
    free_.pop_back();
    PageRecord& record = Record(page);
    record.quota_class = static_cast<uint16_t>(quota_class);
    record.owner = owner.ledger_cell;
    record.position = static_cast<uint32_t>(owner.pages.size());
    owner.pages.push_back(page);
  }
  const std::span<const PageId> pages = std::span(owner.pages).last(n);
  out.insert(out.end(), pages.begin(), pages.end());
  reserved_[quota_class] += n;
  Move(pages, PageState::kFree, PageState::kReserved);
}

void PagePool::Release(PageOwner& owner, PageId page) {
  TakeFromOwner(owner, page);
  Free({&page, 1}, PageState::kReserved);
}

void PagePool::Seal(PageOwner& owner, std::span<const PageId> pages) {
  for (PageId page : pages) {
    TakeFromOwner(owner, page);
    ++Record(page).generation;
  }
  Move(pages, PageState::kReserved, PageState::kSealed);
}

void PagePool::FreeSealed(std::span<const PageId> pages) {
  Free(pages, PageState::kSealed);
}

void PagePool::Quarantine(PageOwner& owner, size_t most,
                          std::vector<PageId>& quarantined) {
  const size_t kept = owner.pages.size() - std::min(most, owner.pages.size());
  const std::span<const PageId> pages = std::span(owner.pages).subspan(kept);
  for (PageId page : pages) --reserved_[quota_class(page)];
  Move(pages, PageState::kReserved, PageState::kQuarantined);
  quarantined.insert(quarantined.end(), pages.begin(), pages.end());
  owner.pages.resize(kept);
}

void PagePool::FreeQuarantined(std::span<const PageId> pages) {
  Free(pages, PageState::kQuarantined);
}

absl::Status PagePool::CheckReserved(const PageOwner& owner,
                                     std::span<const PageId> pages) {
  size_t marked = 0;
  while (marked < pages.size() && IsInRange(pages[marked]) &&
         IsReservedBy(owner, pages[marked]) &&
         !Record(pages[marked]).is_marked) {
    Record(pages[marked]).is_marked = true;
    ++marked;
  }
  for (PageId page : pages.first(marked)) Record(page).is_marked = false;
  if (marked == pages.size()) return absl::OkStatus();
  return WhyRefused(owner, pages[marked]);
}

absl::Status PagePool::WhyRefused(const PageOwner& owner, PageId page) const {
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
  return ListedTwice(page);
}

absl::Status PagePool::ListedTwice(PageId page) {
  return MakeError(Reason::kDuplicatePage,
                   absl::StrCat("page ", page.value(), " is listed twice"));
}

void PagePool::Move(std::span<const PageId> pages, PageState from,
                    PageState to) {
  const uint32_t n = static_cast<uint32_t>(pages.size());
  counts_[static_cast<size_t>(from)] -= n;
  counts_[static_cast<size_t>(to)] += n;
  for (PageId page : pages) {
    PageRecord& record = Record(page);
    CHECK(record.state == from);
    record.state = to;
  }
  if (audit_ == nullptr) return;
  for (PageId page : pages) {
    if (!audit_->HasCounted(page)) continue;
    audit_->Remove(from, quota_class(page));
    audit_->Add(to, quota_class(page));
  }
}

void PagePool::Free(std::span<const PageId> pages, PageState from) {
  for (PageId page : pages) {
    PageRecord& record = Record(page);
    ++record.generation;
    record.position = static_cast<uint32_t>(free_.size());
    free_.push_back(page);
  }
  Move(pages, from, PageState::kFree);
}

// The last page of the list takes the place of the one that leaves.
void PagePool::TakeFromOwner(PageOwner& owner, PageId page) {
  CHECK(IsReservedBy(owner, page));
  --reserved_[quota_class(page)];
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
