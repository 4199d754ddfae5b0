#ifndef PANDO_SERVICE_EVENTS_CACHED_PAGES_H_
#define PANDO_SERVICE_EVENTS_CACHED_PAGES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/ids.h"
#include "core/event_log.h"
#include "core/namespace_key.h"
#include "pando/v1/events.pb.h"
#include "service/events/page_hash.h"

namespace pando {

// The cached pages as the events of the cache tell them, with their hashes:
// what turns these events into those of pando.v1.Events, and what a snapshot is
// made of. Owned by EventPublisher; not thread-safe.
//
// It keeps a copy of each page's tokens, not the segment they came in, which
// would keep evicted tokens in memory.
class CachedPages {
 public:
  // Is given an event without its number; the event is reused afterwards.
  using Emit = std::function<void(v1::Event& event)>;

  CachedPages(uint32_t capacity_pages, uint32_t page_tokens);

  // Applies `event` and emits what it means, in messages of a bounded size.
  void Apply(const RawEvent& event, const Emit& emit);

  // Emits BlocksStored for all that is cached, each page after its parent.
  void Describe(const Emit& emit);

 private:
  struct Page {
    PageHash hash;
    PageId parent;
    std::shared_ptr<const NamespaceKey> ns;  // null: not cached
  };

  void Store(const PagesStored& stored);
  // The pages follow one another in one prompt.
  void EmitStored(std::span<const PageId> run, const Emit& emit);
  void EmitRemoved(const PagesRemoved& removed, const Emit& emit);

  Page& At(PageId page) { return pages_[page.value()]; }
  Token* TokensOf(PageId page) {
    return tokens_.data() + size_t{page.value()} * (page_tokens_ + 1);
  }

  const uint32_t page_tokens_;
  const size_t max_blocks_;  // of one event
  PageHasher hasher_;
  std::vector<Page> pages_;
  // One more than page_tokens for each page, for bigram namespaces.
  std::vector<Token> tokens_;
  v1::Event event_;  // scratch
};

}  // namespace pando

#endif  // PANDO_SERVICE_EVENTS_CACHED_PAGES_H_
