#ifndef PANDO_EVENTS_CACHED_PAGES_H_
#define PANDO_EVENTS_CACHED_PAGES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/ids.h"
#include "core/journal/event_log.h"
#include "core/nodes/page_hash.h"
#include "core/requests/namespace_key.h"

namespace pando {

// The cached pages as far as events have reported them, each with its hash, its
// tokens and its place in its prompt. Sinks look pages up here. Owned by
// EventPublisher; not thread-safe.
//
// It keeps a copy of each page's tokens, not the segment they came in, which
// would keep evicted tokens in memory.
//
// Invariant: the parent of a cached page is cached.
class CachedPages {
 public:
  CachedPages(uint32_t capacity_pages, uint32_t page_tokens);

  // REQUIRES: the parent is cached, and the pages are not.
  void Store(const PagesStored& stored);
  // REQUIRES: `pages` are cached.
  void Remove(std::span<const PageId> pages);
  void Clear();

  uint32_t page_tokens() const { return page_tokens_; }

  // REQUIRES, here and below: the page is cached.
  const PageHash& hash(PageId page) const { return At(page).hash; }
  // The page before it in its prompt, or kPaddingPage if it begins the prompt.
  PageId parent(PageId page) const { return At(page).parent; }
  // Returns how many pages of the prompt end with it: 1 for the first page.
  uint32_t ordinal(PageId page) const { return At(page).ordinal; }
  const NamespaceKey& ns(PageId page) const { return *At(page).ns; }
  // The tokens that spell the page: page_tokens of them, one more in a bigram
  // namespace.
  std::span<const Token> tokens(PageId page) const;

  // Calls `visit` with runs of pages that follow one another in one prompt.
  // Together they are all that is cached; each page comes once, after its
  // parent.
  void ForEachRun(
      const std::function<void(std::span<const PageId> run)>& visit) const;

 private:
  struct Page {
    PageHash hash;
    PageId parent;
    uint32_t ordinal = 0;
    std::shared_ptr<const NamespaceKey> ns;  // null if it is not cached
  };

  Page& At(PageId page) { return pages_[page.value()]; }
  const Page& At(PageId page) const { return pages_[page.value()]; }
  size_t FirstTokenOf(PageId page) const {
    return size_t{page.value()} * (page_tokens_ + 1);
  }

  const uint32_t page_tokens_;
  PageHasher hasher_;
  std::vector<Page> pages_;
  // One more than page_tokens for each page, for bigram namespaces.
  std::vector<Token> tokens_;
};

}  // namespace pando

#endif  // PANDO_EVENTS_CACHED_PAGES_H_
