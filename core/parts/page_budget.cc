#include "core/parts/page_budget.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "core/requests/errors.h"

namespace pando {

PageBudget::PageBudget(const QuotaClasses* classes, RadixTree* tree,
                       PagePool* pool, CacheJournal* journal)
    : classes_(classes),
      tree_(tree),
      pool_(pool),
      journal_(journal),
      limits_(classes->count()),
      allowances_(classes->count()) {}

void PageBudget::SetQuotas(const std::vector<QuotaClass>& classes) {
  CHECK(classes.size() + 1 == limits_.size());
  for (size_t c = 0; c < classes.size(); ++c) {
    limits_[c] = {classes[c].floor_pages, classes[c].cap_pages,
                  classes[c].max_retention_seconds};
  }
}

void PageBudget::SetWatermark(uint32_t low_free_pages,
                              uint32_t high_free_pages) {
  low_free_pages_ = low_free_pages;
  high_free_pages_ = high_free_pages;
}

uint32_t PageBudget::UsedPages(uint32_t quota_class) const {
  return tree_->cached_pages(quota_class) + pool_->reserved_count(quota_class);
}

uint32_t PageBudget::SparePages(uint32_t quota_class) const {
  const uint32_t cached = tree_->cached_pages(quota_class);
  const uint32_t floor = limits_[quota_class].floor_pages;
  return std::min(tree_->evictable_pages(quota_class),
                  cached - std::min(cached, floor));
}

uint64_t PageBudget::PoolRoom(uint32_t quota_class, uint32_t held_back) const {
  uint64_t room = uint64_t{pool_->count(PageState::kFree)} +
                  tree_->evictable_pages(quota_class) - held_back;
  for (uint32_t c = 0; c < classes_->count(); ++c) {
    if (c != quota_class) room += SparePages(c);
  }
  return room;
}

uint32_t PageBudget::MaxMorePages(uint32_t quota_class) const {
  uint64_t most = PoolRoom(quota_class, 0);
  if (const auto cap = limits_[quota_class].cap_pages; cap.has_value()) {
    const uint64_t within =
        uint64_t{*cap} + tree_->evictable_pages(quota_class);
    const uint64_t used = UsedPages(quota_class);
    most = std::min(most, within - std::min(within, used));
  }
  return static_cast<uint32_t>(most);
}

absl::Status PageBudget::CheckRoom(uint32_t pages, uint32_t quota_class,
                                   uint32_t held_back) {
  const uint32_t own = tree_->evictable_pages(quota_class) - held_back;
  const std::optional<uint32_t> cap = limits_[quota_class].cap_pages;
  const uint32_t used = UsedPages(quota_class);
  if (cap.has_value() && uint64_t{used} + pages > uint64_t{*cap} + own) {
    journal_->NoteRejectedQuota(quota_class);
    ++journal_->measured().failed_allocations[AllocationFailure::kQuota];
    return MakeError(
        Reason::kQuotaExceeded,
        absl::StrCat(pages, " pages are needed, but namespaces of class '",
                     classes_->name(quota_class), "' have ", used, " of ", *cap,
                     " pages, ", own, " of them evictable"));
  }
  const uint32_t free = pool_->count(PageState::kFree);
  const uint64_t room = PoolRoom(quota_class, held_back);
  if (pages <= room) return absl::OkStatus();
  ++journal_->counters().allocation_failures;
  ++journal_->measured().failed_allocations[pages < pool_->capacity()
                                                ? AllocationFailure::kExhausted
                                                : AllocationFailure::kTooLarge];
  return MakeError(
      Reason::kPoolExhausted,
      absl::StrCat(pages, " pages are needed, but only ", free,
                   " are free and ", room - free, " evictable of ",
                   pool_->capacity() - 1, "; ",
                   tree_->protected_pages() + held_back, " are protected, ",
                   pool_->count(PageState::kReserved), " reserved, ",
                   pool_->count(PageState::kQuarantined), " quarantined"));
}

// Pages that were reserved for another class count for this one once they are
// cached.
absl::Status PageBudget::CheckMayCache(std::span<const PageId> pages,
                                       uint32_t quota_class) {
  return CheckMayJoin(CountJoining(pages, quota_class), quota_class);
}

uint32_t PageBudget::CountJoining(std::span<const PageId> pages,
                                  uint32_t quota_class) const {
  if (!limits_[quota_class].cap_pages.has_value()) return 0;
  return static_cast<uint32_t>(std::ranges::count_if(pages, [&](PageId page) {
    return pool_->quota_class(page) != quota_class;
  }));
}

absl::Status PageBudget::CheckMayJoin(uint32_t joining, uint32_t quota_class) {
  const std::optional<uint32_t> cap = limits_[quota_class].cap_pages;
  if (!cap.has_value()) return absl::OkStatus();
  const uint32_t used = UsedPages(quota_class);
  if (joining == 0 || uint64_t{used} + joining <= *cap) {
    return absl::OkStatus();
  }
  journal_->NoteRejectedQuota(quota_class);
  return MakeError(
      Reason::kQuotaExceeded,
      absl::StrCat(joining, " pages of another class were to join class '",
                   classes_->name(quota_class), "', whose namespaces have ",
                   used, " of ", *cap, " pages"));
}

void PageBudget::Reserve(uint32_t pages, uint32_t quota_class, PageOwner& owner,
                         std::vector<PageId>& out) {
  if (pages == 0) return;
  const uint32_t evicted = MakeRoomAndReserve(pages, quota_class, owner, out);
  ++journal_->measured().allocations;
  if (evicted > 0) ++journal_->measured().allocations_after_eviction;
}

uint32_t PageBudget::MakeRoomAndReserve(uint32_t pages, uint32_t quota_class,
                                        PageOwner& owner,
                                        std::vector<PageId>& out) {
  uint32_t evicted = 0;
  if (const auto cap = limits_[quota_class].cap_pages; cap.has_value()) {
    const uint32_t used = UsedPages(quota_class) + pages;
    if (used > *cap) {
      std::fill(allowances_.begin(), allowances_.end(), 0);
      allowances_[quota_class] = used - *cap;
      evicted += EvictWithin(used - *cap, EvictionReason::kQuota);
    }
  }
  const uint32_t free = pool_->count(PageState::kFree);
  if (free < pages) {
    for (uint32_t c = 0; c < classes_->count(); ++c) {
      allowances_[c] = SparePages(c);
    }
    allowances_[quota_class] = tree_->evictable_pages(quota_class);
    evicted += EvictWithin(pages - free, EvictionReason::kAllocation);
  }
  pool_->Reserve(pages, quota_class, owner, out);
  journal_->counters().allocated_pages += pages;
  return evicted;
}

uint32_t PageBudget::Evict(uint32_t pages, EvictionReason reason) {
  for (uint32_t c = 0; c < classes_->count(); ++c) {
    allowances_[c] = SparePages(c);
  }
  return EvictWithin(pages, reason);
}

uint32_t PageBudget::EvictToWatermark(uint32_t pages) {
  const uint32_t free = pool_->count(PageState::kFree);
  is_below_watermark_ =
      free < (is_below_watermark_ ? high_free_pages_ : low_free_pages_);
  if (!is_below_watermark_) return 0;
  return Evict(std::min(high_free_pages_ - free, pages),
               EvictionReason::kWatermark);
}

PageBudget::Flushed PageBudget::Flush(uint32_t begin, uint32_t end,
                                      std::optional<NamespaceNumber> ns,
                                      uint32_t pages,
                                      std::optional<uint32_t> rest) {
  Flushed flushed{.next = begin, .rest = rest};
  while (evicted_.size() < pages &&
         (flushed.rest.has_value() || flushed.next < end)) {
    const uint32_t cell =
        flushed.rest.has_value() ? *flushed.rest : flushed.next++;
    flushed.rest = tree_->EvictFrom(
        cell, ns, pages - static_cast<uint32_t>(evicted_.size()),
        [&](const Node& leaf, uint32_t kept_pages) {
          NoteTrimmed(leaf, kept_pages, EvictionReason::kFlush);
        },
        evicted_);
  }
  flushed.pages = FreeEvicted(EvictionReason::kFlush);
  if (flushed.pages > 0 && tree_->node_count() == 0) journal_->NoteEmptied();
  return flushed;
}

uint32_t PageBudget::EvictWithin(uint32_t pages, EvictionReason reason) {
  tree_->Evict(
      pages, allowances_,
      [&](const Node& leaf, uint32_t kept_pages) {
        NoteTrimmed(leaf, kept_pages, reason);
      },
      evicted_);
  return FreeEvicted(reason);
}

void PageBudget::NoteTrimmed(const Node& leaf, uint32_t kept_pages,
                             EvictionReason reason) {
  journal_->NoteTrimmed(leaf, kept_pages, reason, tree_->policy(),
                        tree_->page_tokens(), tree_->time());
}

uint32_t PageBudget::FreeEvicted(EvictionReason reason) {
  const auto count = static_cast<uint32_t>(evicted_.size());
  if (count == 0) return 0;
  pool_->FreeSealed(evicted_);
  journal_->NoteEvicted(evicted_, reason);
  evicted_.clear();
  return count;
}

}  // namespace pando
