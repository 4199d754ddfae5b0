#ifndef PANDO_SERVICE_HANDLERS_TIERED_EXPLANATION_H_
#define PANDO_SERVICE_HANDLERS_TIERED_EXPLANATION_H_

#include <cstdint>
#include <span>

#include "base/ids.h"
#include "core/explanation.h"
#include "core/namespace_key.h"

namespace pando {

// An explanation of a prompt of which so many tokens are cached or kept outside
// the cache; none if nothing is kept.
class TieredExplanation final : public Explanation {
 public:
  TieredExplanation(const NamespaceKey& ns, std::span<const Token> tokens,
                    uint32_t kept_tokens)
      : Explanation(ns, tokens), kept_tokens_(kept_tokens) {}

  uint32_t kept_tokens() const { return kept_tokens_; }

 private:
  uint32_t kept_tokens_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_HANDLERS_TIERED_EXPLANATION_H_
