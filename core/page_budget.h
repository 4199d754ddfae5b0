#ifndef PANDO_CORE_PAGE_BUDGET_H_
#define PANDO_CORE_PAGE_BUDGET_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "base/ids.h"
#include "core/cache_journal.h"
#include "core/eviction_reason.h"
#include "core/page_pool.h"
#include "core/quota_classes.h"
#include "core/radix_tree.h"

namespace pando {

// Decides who may have how many pages, and evicts what has to go for that:
//
//   RETURN_IF_ERROR(budget.CheckRoom(pages, quota_class, 0));  // changes
//   nothing
//   ...                            // whatever else can fail
//   budget.Reserve(pages, quota_class, owner, out);            // cannot fail
//
// A class of namespaces has a floor and a cap. Others never leave it fewer
// cached pages than its floor; its cached and reserved pages together are never
// more than its cap: there it makes room from its own cached pages, or is
// refused.
//
// Owned by CacheParts; not thread-safe. The pages' states are in PagePool, the
// order of eviction in RadixTree; this holds the limits, and what was evicted
// is told to CacheJournal.
class PageBudget {
 public:
  // All outlive this.
  PageBudget(const QuotaClasses* classes, RadixTree* tree, PagePool* pool,
             CacheJournal* journal);

  // REQUIRES: the classes and their patterns are those of the constructor.
  void SetQuotas(const std::vector<QuotaClass>& classes);
  // EvictToWatermark: below `low` free pages it evicts until `high` are free.
  void SetWatermark(uint32_t low_free_pages, uint32_t high_free_pages);
  const PageLimits& limits(uint32_t quota_class) const {
    return limits_[quota_class];
  }

  // Whether `pages` more can be reserved for a class, of whose evictable pages
  // `held_back` stay. QUOTA_EXCEEDED or POOL_EXHAUSTED; what is refused is
  // counted, and nothing else changes.
  absl::Status CheckRoom(uint32_t pages, uint32_t quota_class,
                         uint32_t held_back);
  // The most pages that CheckRoom lets a class reserve.
  uint32_t MostPages(uint32_t quota_class) const;
  // Whether `pages` may become cached pages of a class, though some of them are
  // reserved for another: QUOTA_EXCEEDED.
  absl::Status CheckJoin(std::span<const PageId> pages, uint32_t quota_class);

  // Reserves `pages` for `owner`, evicting as needed, and appends them to
  // `out`. REQUIRES: CheckRoom says so.
  void Reserve(uint32_t pages, uint32_t quota_class, PageOwner& owner,
               std::vector<PageId>& out);

  // Evicts up to `pages` pages, none that takes a class below its floor.
  // Returns how many it did.
  uint32_t Evict(uint32_t pages, EvictionReason reason);
  // Evicts at most `pages` of what the watermark asks for.
  uint32_t EvictToWatermark(uint32_t pages);
  // Evicts up to `pages` pages, whatever the floors: of the nodes in the cells
  // from `begin` to `end` those that are unlocked leaves, and what becomes one
  // by that; only of namespace `ns`, if one is given. `next` is the cell to go
  // on with.
  struct Flushed {
    uint32_t pages = 0;
    uint32_t next = 0;
  };
  Flushed Flush(uint32_t begin, uint32_t end, std::optional<NamespaceNumber> ns,
                uint32_t pages);

 private:
  // Cached and reserved pages of a class.
  uint32_t UsedPages(uint32_t quota_class) const;
  // Evictable pages of a class that others may evict.
  uint32_t SparePages(uint32_t quota_class) const;
  // Free pages, and those that may be evicted for a class, but for `held_back`
  // of its own.
  uint64_t PoolRoom(uint32_t quota_class, uint32_t held_back) const;
  // Evicts up to `pages`, at most allowances_[c] of class c.
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
  // Scratch, so that evicting allocates nothing: what a class may lose, and
  // what was evicted.
  std::vector<uint32_t> allowances_;
  std::vector<PageId> evicted_;
};

}  // namespace pando

#endif  // PANDO_CORE_PAGE_BUDGET_H_
