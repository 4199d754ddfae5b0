#ifndef PANDO_CORE_EVENT_LOG_H_
#define PANDO_CORE_EVENT_LOG_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "core/eviction_reason.h"
#include "core/namespace_key.h"
#include "core/segment.h"

namespace pando {

// Pages that entered the tree, one after the other in one prompt: a slice of a
// segment, which never changes, so that it can be read after the fact and
// without the cache's mutex.
struct PagesStored {
  SegmentRef segment;
  uint32_t first_page = 0;
  uint32_t page_count = 0;
  // The page before the first; kPaddingPage: these begin a prompt.
  PageId parent;
  std::shared_ptr<const NamespaceKey> ns;

  const Token* tokens(uint32_t page_tokens) const {
    return segment->tokens() + size_t{first_page} * page_tokens;
  }
  std::span<const PageId> pages() const {
    return {segment->pages() + first_page, page_count};
  }
};

// Pages that left the tree. Pages that came after them in a prompt left before
// them or with them.
struct PagesRemoved {
  std::vector<PageId> pages;
  EvictionReason reason;
};

// Nothing is cached any more.
struct AllCleared {};

using RawEvent = std::variant<PagesStored, PagesRemoved, AllCleared>;

// Keeps what entered and left the tree, in order, until a reader takes it.
// Logging an event copies no tokens and hashes nothing.
//
// It keeps nothing before Start or after Stop. It is bounded: when nobody takes
// the events for too long it drops them all, and the next Take begins with the
// tree as it is then. Owned by CacheJournal; not thread-safe.
class EventLog {
 public:
  // For a tree of at most `capacity_pages` pages.
  explicit EventLog(uint32_t capacity_pages);

  // Idempotent, both. The first Take after a start describes the tree as it is.
  void Start() { is_on_ = true; }
  void Stop();

  // Pages entered the tree (Stored), or left it (Removed). REQUIRES: at least
  // one page is named.
  void Stored(const SegmentRef& segment, uint32_t first_page,
              uint32_t page_count, PageId parent,
              const std::shared_ptr<const NamespaceKey>& ns);
  void Removed(std::span<const PageId> pages, EvictionReason reason);
  // REQUIRES: nothing is cached.
  void Cleared();

  // Swaps what happened since the last Take into `events`. After a gap that is
  // AllCleared, then what `describe` logs: it calls Stored for each node of the
  // tree, parents first.
  void Take(const std::function<void(EventLog&)>& describe,
            std::vector<RawEvent>& events);

 private:
  bool is_keeping() const { return is_on_ && !has_gap_; }
  void Count(size_t pages);
  // Drops all events; the next Take describes the tree.
  void MakeGap();

  const size_t max_pages_;
  bool is_on_ = false;
  bool has_gap_ = true;  // until the next Take, which describes the tree
  size_t pages_ = 0;     // named by events_
  std::vector<RawEvent> events_;
};

}  // namespace pando

#endif  // PANDO_CORE_EVENT_LOG_H_
