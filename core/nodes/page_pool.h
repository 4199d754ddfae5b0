#ifndef PANDO_CORE_NODES_PAGE_POOL_H_
#define PANDO_CORE_NODES_PAGE_POOL_H_

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/ids.h"

namespace pando {

class CacheAudit;

enum class PageState : uint8_t {
  kPadding,  // page 0
  kFree,
  kReserved,     // owned by a session, being written
  kSealed,       // in the tree, immutable
  kQuarantined,  // a process of its lost session may still be writing
};
inline constexpr size_t kPageStates = 5;

// Names a page while it stays reserved, that is, until it is sealed or freed.
// The default, page 0, names none.
struct Reservation {
  PageId page;
  uint32_t generation = 0;

  friend bool operator==(const Reservation&, const Reservation&) = default;
  template <typename H>
  friend H AbslHashValue(H state, const Reservation& reservation) {
    return H::combine(std::move(state), reservation.page,
                      reservation.generation);
  }
};

// The list of the reserved pages of one session, which PagePool keeps.
struct PageOwner {
  std::vector<PageId> pages;
  // The cell of the session in the ledger (SessionFacts), which the records of
  // its pages name; 0: none.
  uint8_t ledger_cell = 0;
};

// The facts that PagePool keeps of a page. Plain data, which may be in a
// PageLedger.
struct PageRecord {
  uint32_t generation = 0;
  // The place of a reserved page in the list of its owner, or of a free page in
  // the list of free pages.
  uint32_t position = 0;
  uint16_t quota_class = 0;  // reserved pages only
  uint8_t owner = 0;         // PageOwner::ledger_cell; reserved pages only
  PageState state : 7 = PageState::kFree;
  // Scratch of PagePool::CheckReserved, which looks for repeated pages.
  bool is_marked : 1 = false;
};
static_assert(sizeof(PageRecord) == 12);

// Knows the state of each page, and the quota class that a reserved page counts
// for. It handles page ids only; the bytes are in the KvPool.
//
// Owned by CacheParts; not thread-safe. Each change is O(1) a page.
//
// Invariant: a page is in exactly one state; the counts by state are exact and
// sum to the capacity. A reserved page knows its place in the list of its
// owner, a free page its place in the list of free pages.
class PagePool {
 public:
  // `capacity` counts page 0; at least 2. Its records are in `ledger`, or in
  // memory of its own if that is empty. REQUIRES: a ledger has `capacity`
  // records and outlives this. If the records are of an earlier process,
  // Recover must be called before anything else.
  PagePool(uint32_t capacity, uint32_t quota_classes,
           std::span<PageRecord> ledger = {}, bool is_of_before = false);

  uint32_t capacity() const { return static_cast<uint32_t>(records_.size()); }
  uint32_t count(PageState state) const {
    return counts_[static_cast<size_t>(state)];
  }
  uint32_t reserved_count(uint32_t quota_class) const {
    return reserved_[quota_class];
  }
  bool IsInRange(PageId page) const {
    return page != kPaddingPage && page.value() < capacity();
  }
  // Here and below, REQUIRES: every page is in range.
  PageState state(PageId page) const { return Record(page).state; }
  bool IsReservedBy(const PageOwner& owner, PageId page) const {
    const PageRecord& record = Record(page);
    return record.state == PageState::kReserved &&
           record.position < owner.pages.size() &&
           owner.pages[record.position] == page;
  }
  // REQUIRES: the page is reserved.
  uint32_t quota_class(PageId page) const { return Record(page).quota_class; }
  // Changes whenever the page is sealed or freed.
  uint32_t generation(PageId page) const { return Record(page).generation; }
  // REQUIRES: the page is reserved.
  Reservation reservation(PageId page) const {
    return {page, generation(page)};
  }

  // Reserves `n` free pages for `owner`, and appends them to `out`.
  // REQUIRES: count(kFree) >= n.
  void Reserve(uint32_t n, uint32_t quota_class, PageOwner& owner,
               std::vector<PageId>& out);
  // Frees a reserved page. REQUIRES: `owner` has reserved it.
  void Release(PageOwner& owner, PageId page);
  // Marks reserved pages as sealed: they are in the tree from now on. REQUIRES:
  // `owner` has reserved them.
  void Seal(PageOwner& owner, std::span<const PageId> pages);
  // Frees sealed pages, which have left the tree.
  void FreeSealed(std::span<const PageId> pages);
  // Quarantines the last pages of `owner`, at most `most`: takes them off its
  // list and appends them to `quarantined`.
  void Quarantine(PageOwner& owner, size_t most,
                  std::vector<PageId>& quarantined);
  // Takes over the records of an earlier process, in which the pages for which
  // `is_cached` is true are in the tree. All others that were not free belong
  // to no owner until TakeReserved or TakeEarlier.
  void Recover(const std::vector<bool>& is_cached);
  // Gives owners the pages that they had reserved: those whose record names the
  // cell `i` to `owners[i]`, if that is not null.
  void TakeReserved(std::span<PageOwner* const> owners);
  // Gives `owner` all others that were reserved, in quarantine, or in a tree
  // from which they could not be recovered; once.
  void TakeEarlier(PageOwner& owner);

  // Frees quarantined pages.
  void FreeQuarantined(std::span<const PageId> pages);

  // OK if `owner` has reserved each of `pages` and none is listed twice; else
  // PAGE_OUT_OF_RANGE, PAGE_NOT_OWNED or DUPLICATE_PAGE. The pages may be out
  // of range.
  absl::Status CheckReserved(const PageOwner& owner,
                             std::span<const PageId> pages);

  // Returns the error DUPLICATE_PAGE for a page that is listed twice.
  static absl::Status ListedTwice(PageId page);

  // Adds a sentence for each invariant that does not hold at `page`.
  void AppendViolations(PageId page,
                        std::vector<std::string>& violations) const;
  // How many pages are in the list of free pages.
  size_t listed_free_pages() const { return free_.size(); }
  // From now on reports to `audit` the changes of pages that it has counted.
  // Null ends that.
  void set_audit(CacheAudit* audit) { audit_ = audit; }

 private:
  friend class DamagedCache;  // tests break what AppendViolations finds

  PageRecord& Record(PageId page) { return records_[page.value()]; }
  const PageRecord& Record(PageId page) const { return records_[page.value()]; }
  // The error with which CheckReserved refuses this page.
  absl::Status WhyRefused(const PageOwner& owner, PageId page) const;
  // Changes the state of the pages, which is `from`, and the counts with it.
  void Move(std::span<const PageId> pages, PageState from, PageState to);
  void Free(std::span<const PageId> pages, PageState from);
  // Reserves a page of an earlier process for `owner`.
  void TakeOver(PageOwner& owner, PageId page, uint16_t quota_class);
  // Makes a page free that had no record.
  void AddFree(PageId page);
  // Takes the page off the owner's list. The caller changes its state.
  void TakeFromOwner(PageOwner& owner, PageId page);

  std::vector<PageRecord> own_records_;
  const std::span<PageRecord> records_;
  std::vector<PageId> free_;  // a stack: what was freed last is warm
  std::array<uint32_t, kPageStates> counts_{};
  std::vector<uint32_t> reserved_;  // by quota class
  std::vector<PageId> earlier_;     // see TakeEarlier
  CacheAudit* audit_ = nullptr;
};

}  // namespace pando

#endif  // PANDO_CORE_NODES_PAGE_POOL_H_
