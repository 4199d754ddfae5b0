#ifndef PANDO_CORE_PARTS_PAGE_BUDGET_H_
#define PANDO_CORE_PARTS_PAGE_BUDGET_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "base/ids.h"
#include "core/eviction/quota_classes.h"
#include "core/journal/cache_journal.h"
#include "core/nodes/page_pool.h"
#include "core/requests/eviction_reason.h"
#include "core/tree/radix_tree.h"

namespace pando {

// Decides how many pages a quota class may have, and evicts what is in the way.
// Checking and reserving are two calls, so that an admission can fail between
// them without having changed anything:
//
//   RETURN_IF_ERROR(budget.CheckRoom(pages, quota_class, 0));  // no changes
//   ...                            // whatever else can fail
//   budget.Reserve(pages, quota_class, owner, out);            // cannot fail
//
// A class of namespaces has a floor and a cap. Eviction for other classes never
// leaves it fewer cached pages than its floor. A class gets no page that would
// take its cached and reserved pages above its cap: at the cap it must evict
// its own cached pages, or is refused.
//
// Owned by CacheParts; not thread-safe. It contains only the limits: the states
// of pages are in PagePool, the order of eviction is in RadixTree. It reports
// evictions to CacheJournal.
class PageBudget {
 public:
  // All arguments outlive this.
  PageBudget(const QuotaClasses* classes, RadixTree* tree, PagePool* pool,
             CacheJournal* journal);

  // REQUIRES: the classes and their patterns are those of the constructor.
  void SetQuotas(const std::vector<QuotaClass>& classes);
  // Sets when EvictToWatermark evicts: with fewer than `low_free_pages` free
  // pages, until `high_free_pages` are free.
  void SetWatermark(uint32_t low_free_pages, uint32_t high_free_pages);
  const PageLimits& limits(uint32_t quota_class) const {
    return limits_[quota_class];
  }

  // OK when `pages` more can be reserved for a class while `held_back` of its
  // evictable pages stay cached (the caller is about to lock them). Else
  // QUOTA_EXCEEDED or POOL_EXHAUSTED; the failure is counted, and nothing else
  // changes.
  absl::Status CheckRoom(uint32_t pages, uint32_t quota_class,
                         uint32_t held_back);
  // The most pages that CheckRoom lets a class reserve.
  uint32_t MaxMorePages(uint32_t quota_class) const;
  // OK when `pages` may be cached for a class; QUOTA_EXCEEDED when those among
  // them that are reserved for another class would take it over its cap.
  absl::Status CheckMayCache(std::span<const PageId> pages,
                             uint32_t quota_class);
  // The same check in parts. CountJoining counts the pages that are reserved
  // for another class; CheckMayJoin says whether so many may join this class.
  // If the class has no cap, CountJoining returns 0.
  uint32_t CountJoining(std::span<const PageId> pages,
                        uint32_t quota_class) const;
  absl::Status CheckMayJoin(uint32_t joining, uint32_t quota_class);

  // Reserves `pages` pages for `owner`, evicting as needed, and appends them to
  // `out`. REQUIRES: CheckRoom returned OK.
  void Reserve(uint32_t pages, uint32_t quota_class, PageOwner& owner,
               std::vector<PageId>& out);
  // The same for more pages of an allocation that has begun with Reserve.
  void ReserveMore(uint32_t pages, uint32_t quota_class, PageOwner& owner,
                   std::vector<PageId>& out) {
    MakeRoomAndReserve(pages, quota_class, owner, out);
  }

  // Evicts up to `pages` pages, but takes no class below its floor. Returns how
  // many pages it evicted.
  uint32_t Evict(uint32_t pages, EvictionReason reason);
  // Evicts at most `pages` of the pages that the watermark asks for. Returns
  // how many pages it evicted.
  uint32_t EvictToWatermark(uint32_t pages);
  // Evicts up to `pages` pages, even below the floors: of unlocked leaves in
  // the cells from `begin` to before `end`, and of their ancestors that become
  // leaves by that. If `ns` is given, only in that namespace. To go on, pass
  // the `next` and `rest` of the result as `begin` and `rest`.
  struct Flushed {
    uint32_t pages = 0;
    uint32_t next = 0;
    std::optional<uint32_t> rest = {};  // a cell whose turn is not over
  };
  Flushed Flush(uint32_t begin, uint32_t end, std::optional<NamespaceNumber> ns,
                uint32_t pages, std::optional<uint32_t> rest = std::nullopt);

 private:
  // Cached and reserved pages of a class.
  uint32_t UsedPages(uint32_t quota_class) const;
  // How many evictable pages of a class may be evicted for other classes.
  uint32_t SparePages(uint32_t quota_class) const;
  // The free pages, plus the pages that may be evicted for a class, less
  // `held_back` pages of its own.
  uint64_t PoolRoom(uint32_t quota_class, uint32_t held_back) const;
  // Returns how many pages it evicted.
  uint32_t MakeRoomAndReserve(uint32_t pages, uint32_t quota_class,
                              PageOwner& owner, std::vector<PageId>& out);
  // Evicts up to `pages` pages, at most allowances_[c] of them from class c.
  uint32_t EvictWithin(uint32_t pages, EvictionReason reason);
  void NoteTrimmed(const Node& leaf, uint32_t kept_pages,
                   EvictionReason reason);
  // Frees evicted_ and returns how many pages that were.
  uint32_t FreeEvicted(EvictionReason reason);

  const QuotaClasses* const classes_;
  RadixTree* const tree_;
  PagePool* const pool_;
  CacheJournal* const journal_;
  std::vector<PageLimits> limits_;  // by class
  uint32_t low_free_pages_ = 0;
  uint32_t high_free_pages_ = 0;
  bool is_below_watermark_ = false;
  // Reused from call to call, so that evicting allocates nothing: how many
  // pages each class may lose, and the pages that were evicted.
  std::vector<uint32_t> allowances_;
  std::vector<PageId> evicted_;
};

}  // namespace pando

#endif  // PANDO_CORE_PARTS_PAGE_BUDGET_H_
