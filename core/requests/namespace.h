#ifndef PANDO_CORE_REQUESTS_NAMESPACE_H_
#define PANDO_CORE_REQUESTS_NAMESPACE_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/ids.h"
#include "core/requests/namespace_key.h"

namespace pando {

struct Node;

// How many more tokens than units a run of units has: in a bigram namespace 1,
// because of the second token of the last pair; else 0.
inline uint32_t LookaheadOf(const NamespaceKey& ns) {
  return ns.bigram ? 1 : 0;
}

// The number of tokens that spell `pages` whole pages.
inline size_t SpelledTokens(uint32_t lookahead, size_t pages,
                            uint32_t page_tokens) {
  return pages == 0 ? 0 : pages * page_tokens + lookahead;
}

// The number of whole pages that `tokens` tokens spell.
inline uint32_t WholePages(uint32_t lookahead, size_t tokens,
                           uint32_t page_tokens) {
  if (tokens < lookahead) return 0;
  return static_cast<uint32_t>((tokens - lookahead) / page_tokens);
}

// The number of pages that have room for `tokens` tokens.
inline uint32_t PagesFor(uint32_t tokens, uint32_t page_tokens) {
  return tokens / page_tokens + (tokens % page_tokens != 0 ? 1 : 0);
}

// A namespace: prefixes in it match only prompts of the same namespace. It
// exists while something is cached or locked in it. Plain data, owned and
// changed by RadixTree.
struct Namespace {
  const std::shared_ptr<const NamespaceKey> key;  // shared with events
  const NamespaceNumber number;
  const uint32_t quota_class;  // index in QuotaClasses
  const uint32_t ledger_cell;  // PageLedger::kNoCell: it is not in the ledger
  Node* root = nullptr;
  uint32_t evictable_pages = 0;
  uint32_t protected_pages = 0;
  uint32_t nodes = 0;

  uint32_t lookahead() const { return LookaheadOf(*key); }
};

}  // namespace pando

#endif  // PANDO_CORE_REQUESTS_NAMESPACE_H_
