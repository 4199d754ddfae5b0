#include "core/page_pool.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/check.h"

namespace pando {

PagePool::PagePool(uint32_t capacity) : records_(capacity) {
  CHECK(capacity >= 2);
  records_[0].state = PageState::kPadding;
  counts_[static_cast<size_t>(PageState::kPadding)] = 1;
  counts_[static_cast<size_t>(PageState::kFree)] = capacity - 1;
  free_.reserve(capacity - 1);
  for (uint32_t id = capacity - 1; id > 0; --id) free_.push_back(PageId(id));
}

bool PagePool::IsReservedBy(const PageOwner& owner, PageId page) const {
  const PageRecord& record = Record(page);
  return record.state == PageState::kReserved && record.owner == owner.ordinal;
}

void PagePool::Reserve(uint32_t n, PageOwner& owner, std::vector<PageId>& out) {
  CHECK(n <= free_.size());
  for (uint32_t i = 0; i < n; ++i) {
    const PageId page = free_.back();
    free_.pop_back();
    PageRecord& record = Record(page);
    Move(record, PageState::kReserved);
    record.owner = owner.ordinal;
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
  for (PageId page : owner.pages) Move(Record(page), PageState::kQuarantined);
  return std::exchange(owner.pages, {});
}

void PagePool::FreeQuarantined(std::span<const PageId> pages) {
  for (PageId page : pages) {
    CHECK(state(page) == PageState::kQuarantined);
    PushFree(page);
  }
}

bool PagePool::Mark(PageId page) {
  return !std::exchange(Record(page).is_marked, true);
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

void PagePool::AppendViolations(std::vector<std::string>& violations) const {
  std::array<uint32_t, kPageStates> counted{};
  for (uint32_t id = 0; id < capacity(); ++id) {
    const PageRecord& record = records_[id];
    ++counted[static_cast<size_t>(record.state)];
    if (record.is_marked) {
      violations.push_back(absl::StrCat("pool: page ", id, " is left marked"));
    }
  }
  if (counted != counts_) {
    violations.push_back("pool: the counts by state are wrong");
  }
  if (free_.size() != count(PageState::kFree)) {
    violations.push_back(absl::StrCat("pool: ", free_.size(),
                                      " pages in the free list, but ",
                                      count(PageState::kFree), " are free"));
  }
  for (PageId page : free_) {
    if (state(page) != PageState::kFree) {
      violations.push_back(absl::StrCat("pool: page ", page.value(),
                                        " is in the free list, but not free"));
    }
  }
}

}  // namespace pando
