#ifndef PANDO_CORE_PARTS_CACHE_PARTS_H_
#define PANDO_CORE_PARTS_CACHE_PARTS_H_

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "base/ids.h"
#include "core/blocks/block_holds.h"
#include "core/blocks/block_table.h"
#include "core/eviction/eviction_policy.h"
#include "core/eviction/quota_classes.h"
#include "core/journal/cache_journal.h"
#include "core/nodes/page_ledger.h"
#include "core/nodes/page_pool.h"
#include "core/parts/page_budget.h"
#include "core/sessions/pending_pages.h"
#include "core/sessions/session_holdings.h"
#include "core/sessions/session_table.h"
#include "core/tree/radix_tree.h"

namespace pando {

// All that PrefixCache guards with its mutex: single-threaded parts that do not
// know of the mutex. Each part may use those above it. Code that needs several
// parts is a function of all CacheParts: it changes them (match.h, insert.h),
// or takes them const and only reads (explanation.h, listings.h, tree_copy.h).
struct CacheParts {
  // `classes` and `ledger` outlive this; `ledger` is null if there is none.
  CacheParts(uint32_t page_tokens, uint32_t capacity_pages,
             EvictionPolicyKind policy, const QuotaClasses* classes,
             const ReuseOptions& reuse, uint32_t first_told_hit,
             const BlockOptions& block_options, PageLedger* ledger)
      : quota_classes(*classes),
        tree(page_tokens, capacity_pages - 1, policy, classes, reuse, ledger),
        pool(capacity_pages, classes->count(),
             ledger == nullptr ? std::span<PageRecord>() : ledger->records(),
             ledger != nullptr && ledger->is_of_before()),
        journal(capacity_pages, classes->count(), first_told_hit),
        sessions(ledger),
        pending(&tree, capacity_pages),
        blocks(block_options) {}
  CacheParts(const CacheParts&) = delete;
  CacheParts& operator=(const CacheParts&) = delete;

  // DRAINING if is_draining, else OK.
  absl::Status CheckAdmits() const;

  uint32_t page_tokens() const { return tree.page_tokens(); }

  const QuotaClasses& quota_classes;
  RadixTree tree;
  PagePool pool;
  CacheJournal journal;
  SessionTable sessions;
  PendingPages pending;
  PageBudget budget{&quota_classes, &tree, &pool, &journal};
  BlockTable blocks;
  BlockHolds block_holds{&blocks};
  SessionHoldings holdings{&tree,    &pool,   &sessions,   &pending,
                           &journal, &blocks, &block_holds};
  // Nothing new is admitted any more (PrefixCache::BeginDrain).
  bool is_draining = false;
};

}  // namespace pando

#endif  // PANDO_CORE_PARTS_CACHE_PARTS_H_
