#ifndef PANDO_CORE_JOURNAL_EVENT_LOG_H_
#define PANDO_CORE_JOURNAL_EVENT_LOG_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "core/nodes/segment.h"
#include "core/requests/eviction_reason.h"
#include "core/requests/namespace_key.h"

namespace pando {

// Pages that entered the tree and follow each other in a prompt: a slice of a
// segment. A segment never changes, so readers may read it later and without
// the cache's mutex.
struct PagesStored {
  SegmentRef segment;
  uint32_t first_page = 0;
  uint32_t page_count = 0;
  // The page before the first one; kPaddingPage if the pages begin a prompt.
  PageId parent;
  std::shared_ptr<const NamespaceKey> ns;

  const Token* tokens(uint32_t page_tokens) const {
    return segment->tokens() + size_t{first_page} * page_tokens;
  }
  std::span<const PageId> pages() const {
    return {segment->pages() + first_page, page_count};
  }
};

// Pages that left the tree. Pages that follow them in a prompt left earlier or
// are in the same event.
struct PagesRemoved {
  std::vector<PageId> pages;
  EvictionReason reason;
};

// `last` and all pages before it in its prompt were hit. They are in the tree.
struct PagesHit {
  PageId last;
};

// Nothing is cached any more.
struct AllCleared {};

using RawEvent = std::variant<PagesStored, PagesRemoved, PagesHit, AllCleared>;

// Keeps the events of the tree, in order, until a reader takes them. Logging an
// event copies no tokens and hashes nothing.
//
// It logs nothing before Start and after Stop. It is bounded: if the events are
// not taken for too long, it drops them all and logs nothing until the caller
// ends this gap (EndGap). Owned by CacheJournal; not thread-safe.
class EventLog {
 public:
  // For a tree of at most `capacity_pages` pages.
  explicit EventLog(uint32_t capacity_pages);

  // Both are idempotent. A started log begins with a gap.
  void Start() { is_on_ = true; }
  void Stop();

  // Pages entered the tree (Stored), or left it (Removed). REQUIRES: at least
  // one page is named.
  void Stored(const SegmentRef& segment, uint32_t first_page,
              uint32_t page_count, PageId parent,
              const std::shared_ptr<const NamespaceKey>& ns);
  void Removed(std::span<const PageId> pages, EvictionReason reason);
  void Hit(PageId last);
  // REQUIRES: nothing is cached.
  void Cleared();

  // Whether the log is started but logs nothing, because events are missing.
  bool has_gap() const { return is_on_ && has_gap_; }
  // Ends the gap: logs AllCleared, after which the caller logs the tree as it
  // is. REQUIRES: has_gap().
  void EndGap();
  // Swaps the events since the last Take into `events`.
  void Take(std::vector<RawEvent>& events);

 private:
  bool is_keeping() const { return is_on_ && !has_gap_; }
  void Count(size_t pages);
  // Drops all events.
  void MakeGap();

  const size_t max_pages_;
  bool is_on_ = false;
  bool has_gap_ = true;
  size_t pages_ = 0;  // named by events_
  std::vector<RawEvent> events_;
};

}  // namespace pando

#endif  // PANDO_CORE_JOURNAL_EVENT_LOG_H_
