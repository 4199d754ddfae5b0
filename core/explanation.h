#ifndef PANDO_CORE_EXPLANATION_H_
#define PANDO_CORE_EXPLANATION_H_

#include <cstdint>
#include <span>

#include "base/ids.h"
#include "core/cache_parts.h"
#include "core/namespace_key.h"
#include "core/operator_results.h"

namespace pando {

// Why a prompt matches as far as it does: where and why the match ends, and who
// holds locks on what matched. All but longer_in_namespaces, which goes through
// other namespaces. Changes nothing.
MatchExplanation ExplainMatch(const CacheParts& parts, const NamespaceKey& ns,
                              std::span<const Token> tokens);

// Whether the namespace `number`, unless it is that of `than`, has more of the
// prompt cached than `matched_tokens`.
bool HasMore(const RadixTree& tree, NamespaceNumber number,
             const NamespaceKey& than, std::span<const Token> tokens,
             uint32_t matched_tokens);

}  // namespace pando

#endif  // PANDO_CORE_EXPLANATION_H_
