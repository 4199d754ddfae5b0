#ifndef PANDO_TESTS_EVENTS_STORED_PAGES_H_
#define PANDO_TESTS_EVENTS_STORED_PAGES_H_

#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

#include "core/journal/event_log.h"

namespace pando {

inline std::vector<PageId> Pages(uint32_t first, uint32_t count) {
  std::vector<PageId> pages;
  for (uint32_t i = 0; i < count; ++i) pages.emplace_back(first + i);
  return pages;
}

// Returns the event of a cache that has cached `pages`, with tokens that count
// up from `first_token`.
inline PagesStored StoredPages(const std::vector<PageId>& pages,
                               uint32_t page_tokens, Token first_token,
                               PageId parent, const NamespaceKey& ns) {
  std::vector<Token> tokens(pages.size() * page_tokens + (ns.bigram ? 1 : 0));
  std::iota(tokens.begin(), tokens.end(), first_token);
  return {.segment = SegmentRef::Copy(tokens, pages),
          .first_page = 0,
          .page_count = static_cast<uint32_t>(pages.size()),
          .parent = parent,
          .ns = std::make_shared<NamespaceKey>(ns)};
}

}  // namespace pando

#endif  // PANDO_TESTS_EVENTS_STORED_PAGES_H_
