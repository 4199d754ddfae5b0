#ifndef PANDO_TIERS_PROMPT_HASHES_H_
#define PANDO_TIERS_PROMPT_HASHES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "core/nodes/page_hash.h"
#include "core/requests/namespace_key.h"
#include "core/requests/requests.h"

namespace pando {

// Returns how many whole pages of its prompt the query asks for.
size_t WantedPages(const PrefixQuery& query, uint32_t page_tokens);

// Returns the hashes of the first `pages` pages of a prompt. REQUIRES: the
// prompt has that many whole pages.
std::vector<PageHash> HashPages(PageHasher& hasher, const NamespaceKey& ns,
                                std::span<const Token> tokens, size_t pages,
                                uint32_t page_tokens);

}  // namespace pando

#endif  // PANDO_TIERS_PROMPT_HASHES_H_
