#include "tiers/prompt_hashes.h"

#include <algorithm>

#include "core/requests/namespace.h"

namespace pando {

size_t WantedPages(const PrefixQuery& query, uint32_t page_tokens) {
  const size_t pages =
      WholePages(LookaheadOf(query.ns), query.tokens.size(), page_tokens);
  if (!query.max_tokens.has_value()) return pages;
  return std::min<size_t>(pages, *query.max_tokens / page_tokens);
}

std::vector<PageHash> HashPages(PageHasher& hasher, const NamespaceKey& ns,
                                std::span<const Token> tokens, size_t pages,
                                uint32_t page_tokens) {
  std::vector<PageHash> hashes;
  hashes.reserve(pages);
  PageHash hash = hasher.Seed(ns);
  for (size_t i = 0; i < pages; ++i) {
    const std::span<const Token> page =
        tokens.subspan(i * page_tokens, page_tokens + LookaheadOf(ns));
    hash = hasher.Next(hash, page, ns.bigram);
    hashes.push_back(hash);
  }
  return hashes;
}

}  // namespace pando
