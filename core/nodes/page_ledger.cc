#include "core/nodes/page_ledger.h"

#include <algorithm>

#include "base/check.h"
#include "base/ids.h"
#include "core/nodes/segment.h"

namespace pando {
namespace {

// A process takes over only a ledger with its own magic. So change it whenever
// the layout of anything in the ledger changes, PageRecord and SegmentFacts
// included.
constexpr uint64_t kPageLedgerMagic = 0x32'52'47'44'4c'47'50'50;

// The arena has so many times the bytes that the tokens and ids of all pages
// need in cells that fit: large cells are rounded up to chunks, and half of a
// segment may be of evicted pages. Bytes that are never touched cost nothing.
constexpr uint64_t kArenaTimes = 4;
constexpr uint64_t kMinArenaChunks = 128;

uint64_t ChunksFor(const PageLedger::Pool& pool) {
  const uint64_t page_bytes =
      pool.page_tokens * sizeof(Token) + sizeof(PageId) + sizeof(Segment) / 2;
  return std::max(kMinArenaChunks, kArenaTimes * pool.capacity_pages *
                                       page_bytes / SegmentArena::kChunkBytes);
}

}  // namespace

// Where the parts of a ledger begin, in bytes.
struct PageLedger::Layout {
  explicit Layout(const Pool& pool)
      : chunks(ChunksFor(pool)),
        sessions(kLedgerPage +
                 RoundUpToLedgerPage(kMaxNamespaces * sizeof(NamespaceFacts))),
        locks(sessions +
              RoundUpToLedgerPage(kMaxLedgerSessions * sizeof(SessionFacts))),
        answers(locks +
                RoundUpToLedgerPage(kMaxLedgerLocks * sizeof(LockFacts))),
        records(answers + kAnswerBytes),
        table(records +
              RoundUpToLedgerPage(pool.capacity_pages * sizeof(PageRecord))),
        arena(table + RoundUpToLedgerPage(chunks * sizeof(uint32_t))),
        end(arena + chunks * SegmentArena::kChunkBytes) {}

  static constexpr size_t kAnswerBytes =
      2 * kAnswerPartBytes * kMaxLedgerSessions;

  uint64_t chunks;
  uint64_t sessions;
  uint64_t locks;
  uint64_t answers;
  uint64_t records;
  uint64_t table;
  uint64_t arena;
  uint64_t end;
};

uint64_t PageLedger::BytesFor(const Pool& pool) { return Layout(pool).end; }

bool PageLedger::IsOf(const Pool& pool, std::span<std::byte> memory) {
  if (pool.memory_id == 0 || memory.size() != BytesFor(pool)) return false;
  const auto& header = *reinterpret_cast<const Header*>(memory.data());
  return header.start.magic == kPageLedgerMagic &&
         header.memory_id == pool.memory_id &&
         header.page_tokens == pool.page_tokens &&
         header.capacity_pages == pool.capacity_pages;
}

bool PageLedger::HasSessions(std::span<std::byte> memory) {
  const Layout layout({});
  if (memory.size() < layout.locks ||
      StartOf(memory).magic != kPageLedgerMagic) {
    return false;
  }
  const std::span sessions(
      reinterpret_cast<const SessionFacts*>(memory.data() + layout.sessions),
      kMaxLedgerSessions);
  return std::ranges::any_of(sessions, [](const SessionFacts& facts) {
    return facts.state == SessionState::kWhole && facts.has_mapped != 0;
  });
}

void PageLedger::Complete(std::span<std::byte> memory) {
  StoresBefore();
  StartOf(memory).magic = kPageLedgerMagic;
}

PageLedger::PageLedger(const Pool& pool, std::span<std::byte> memory)
    : PageLedger(pool, memory, Layout(pool)) {}

PageLedger::PageLedger(const Pool& pool, std::span<std::byte> memory,
                       const Layout& layout)
    : header_(reinterpret_cast<Header*>(memory.data())),
      namespaces_(
          reinterpret_cast<NamespaceFacts*>(memory.data() + kLedgerPage)),
      sessions_(
          reinterpret_cast<SessionFacts*>(memory.data() + layout.sessions)),
      locks_(reinterpret_cast<LockFacts*>(memory.data() + layout.locks),
             kMaxLedgerLocks),
      answers_(memory.subspan(layout.answers, Layout::kAnswerBytes)),
      records_(reinterpret_cast<PageRecord*>(memory.data() + layout.records),
               pool.capacity_pages),
      arena_({reinterpret_cast<uint32_t*>(memory.data() + layout.table),
              layout.chunks},
             memory.subspan(layout.arena)) {
  CHECK(memory.size() == layout.end);
  if (header_->start.magic == kPageLedgerMagic) {
    CHECK(IsOf(pool, memory));
    is_of_before_ = true;
    ++header_->start.recoveries;
    header_->namespace_cells =
        std::min(header_->namespace_cells, kMaxNamespaces);
    // No process can open so many sessions, and more would wrap around.
    constexpr uint32_t kMostSessions = 1u << 31;
    if (header_->counts.sessions_opened > kMostSessions) {
      header_->counts.sessions_opened = 0;
    }
    header_->counts.lock_cells =
        std::min(header_->counts.lock_cells, kMaxLedgerLocks);
  } else {
    header_->memory_id = pool.memory_id;
    header_->page_tokens = pool.page_tokens;
    header_->capacity_pages = pool.capacity_pages;
  }
  ++header_->start.starts;
  for (uint32_t cell = namespace_cells(); cell-- > 0;) {
    if (!NamespaceIn(cell).has_value()) free_cells_.push_back(cell);
  }
}

uint32_t PageLedger::AddNamespace(const NamespaceKey& key) {
  uint32_t cell = header_->namespace_cells;
  if (!free_cells_.empty()) {
    cell = free_cells_.back();
    free_cells_.pop_back();
  } else if (cell < kMaxNamespaces) {
    ++header_->namespace_cells;
  } else {
    return kNoCell;
  }
  NamespaceFacts& facts = namespaces_[cell];
  facts.check = 0;
  StoresBefore();
  facts.is_bigram = key.bigram ? 1 : 0;
  facts.extra_key = LedgerText::Of(key.extra_key);
  facts.cache_salt = LedgerText::Of(key.cache_salt);
  StoresBefore();
  facts.check = CheckOf(facts);
  return cell;
}

void PageLedger::RemoveNamespace(uint32_t cell) {
  if (cell == kNoCell) return;
  namespaces_[cell].check = 0;
  StoresBefore();
  free_cells_.push_back(cell);
}

std::optional<NamespaceKey> PageLedger::NamespaceIn(uint32_t cell) const {
  if (cell >= namespace_cells()) return std::nullopt;
  const NamespaceFacts& facts = namespaces_[cell];
  if (facts.check == 0 || facts.check != CheckOf(facts)) return std::nullopt;
  return NamespaceKey{.extra_key = facts.extra_key.optional(),
                      .cache_salt = facts.cache_salt.optional(),
                      .bigram = facts.is_bigram != 0};
}

void PageLedger::SetModel(const std::string& model) {
  if (this->model() == model) return;
  header_->model.is_set = 0;
  StoresBefore();
  LedgerText text = LedgerText::Of(model);
  text.is_set = 0;
  header_->model = text;
  StoresBefore();
  header_->model.is_set = 1;
}

uint32_t PageLedger::CheckOf(const NamespaceFacts& facts) {
  const uint32_t check = CheckOfBytes(
      std::as_bytes(std::span(&facts, 1)).subspan(sizeof(facts.check)), 0);
  return check == 0 ? 1 : check;
}

}  // namespace pando
