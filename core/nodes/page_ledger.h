#ifndef PANDO_CORE_NODES_PAGE_LEDGER_H_
#define PANDO_CORE_NODES_PAGE_LEDGER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/ledger.h"
#include "core/nodes/page_pool.h"
#include "core/nodes/segment_arena.h"
#include "core/nodes/session_facts.h"
#include "core/requests/namespace_key.h"

namespace pando {

// The ledger of pages (base/ledger.h): the states of the pages, the
// namespaces, the segments of the tree with their tokens, and the sessions with
// their locks and last answers. If its memory outlives the process, the next
// process has what was cached, and the sessions; RadixTree::Recover builds the
// tree, SessionRecovery the sessions.
//
// The facts that make others valid are the check of a segment and that of a
// namespace. A page that such a segment contains has the right bytes: they were
// complete before the segment was published, and the segment loses the page
// before the page is free.
//
// Not in the ledger: segments that found no room in it and what continues them,
// namespaces beyond kMaxNamespaces, sessions beyond kMaxLedgerSessions.
//
// Owned by PrefixCache; not thread-safe, but its arena is.
class PageLedger {
 public:
  static constexpr uint32_t kMaxNamespaces = 65'536;
  // The cell of a namespace that is not in the ledger.
  static constexpr uint32_t kNoCell = kMaxNamespaces;
  static constexpr size_t kMaxModelBytes = LedgerText::kMaxBytes;

  // The pool that a ledger describes. A process may take over only the ledger
  // of its own pool.
  struct Pool {
    uint32_t page_tokens = 0;
    uint32_t capacity_pages = 0;
    // Names the memory of the pages and its layout. 0: none.
    uint64_t memory_id = 0;
  };

  // The bytes of memory that a ledger needs. Most of them are never touched.
  static uint64_t BytesFor(const Pool& pool);
  // Whether `memory` contains a ledger of this pool that an earlier process
  // completed, in this layout.
  static bool IsOf(const Pool& pool, std::span<std::byte> memory);
  // Whether `memory` contains a complete ledger of any pool, in this layout,
  // with sessions that can go on and whose workers have mapped the pool.
  static bool HasSessions(std::span<std::byte> memory);
  // Marks the ledger as complete, as BlockLedger::Complete does.
  static void Complete(std::span<std::byte> memory);

  // REQUIRES: `memory` has BytesFor bytes, which are all zero or for which IsOf
  // is true. It outlives this.
  PageLedger(const Pool& pool, std::span<std::byte> memory);
  PageLedger(const PageLedger&) = delete;
  PageLedger& operator=(const PageLedger&) = delete;

  // Whether it took over the ledger of an earlier process.
  bool is_of_before() const { return is_of_before_; }
  uint64_t recoveries() const { return header_->start.recoveries; }

  std::span<PageRecord> records() const { return records_; }
  std::span<LockFacts> locks() const { return locks_; }
  // The session in a cell, and a part of its answers. Cells count from 1.
  SessionFacts& session(uint32_t cell) const { return sessions_[cell - 1]; }
  std::span<std::byte> answers(uint32_t cell, uint32_t part) const {
    const size_t place = size_t{2} * (cell - 1) + part;
    return answers_.subspan(place * kAnswerPartBytes, kAnswerPartBytes);
  }
  SegmentArena& arena() { return arena_; }

  // Counts that go on in the next process.
  struct Counts {
    uint64_t epoch;  // names the sessions, see PrefixCache::epoch
    uint32_t sessions_opened;
    uint32_t lock_cells;      // cells of locks that were ever used
    uint32_t has_more_locks;  // not 0: there were locks without a cell
    // The highest generations in the slabs of nodes and of locks.
    uint32_t node_generation;
    uint32_t lock_generation;
  };
  Counts& counts() const { return header_->counts; }

  // Writes down a namespace and returns its cell, or kNoCell if there is none.
  uint32_t AddNamespace(const NamespaceKey& key);
  // Does nothing for kNoCell. REQUIRES: no segment of the namespace is in the
  // tree.
  void RemoveNamespace(uint32_t cell);
  // The number of cells, and the namespace in a cell, or none.
  uint32_t namespace_cells() const { return header_->namespace_cells; }
  std::optional<NamespaceKey> NamespaceIn(uint32_t cell) const;

  // The configuration of the model that has computed the pages, as the first
  // worker stated it; empty if none has.
  std::string model() const { return header_->model.optional().value_or(""); }
  // REQUIRES: it has at most kMaxModelBytes bytes.
  void SetModel(const std::string& model);

 private:
  struct Header {
    LedgerStart start;
    uint64_t memory_id;
    uint32_t page_tokens;
    uint32_t capacity_pages;
    uint32_t namespace_cells;  // cells that were ever used
    Counts counts;
    LedgerText model;
  };
  static_assert(sizeof(Header) <= kLedgerPage);

  struct NamespaceFacts {
    uint32_t check;  // 0: there is none
    uint8_t is_bigram;
    LedgerText extra_key;
    LedgerText cache_salt;
  };

  struct Layout;

  PageLedger(const Pool& pool, std::span<std::byte> memory,
             const Layout& layout);
  static uint32_t CheckOf(const NamespaceFacts& facts);

  Header* const header_;
  NamespaceFacts* const namespaces_;
  SessionFacts* const sessions_;
  const std::span<LockFacts> locks_;
  const std::span<std::byte> answers_;
  const std::span<PageRecord> records_;
  SegmentArena arena_;
  bool is_of_before_ = false;
  std::vector<uint32_t> free_cells_;
};

}  // namespace pando

#endif  // PANDO_CORE_NODES_PAGE_LEDGER_H_
