#ifndef PANDO_SERVICE_HANDLERS_TIERED_EXPLANATION_H_
#define PANDO_SERVICE_HANDLERS_TIERED_EXPLANATION_H_

#include <span>

#include "base/ids.h"
#include "core/operators/explanation.h"
#include "core/requests/namespace_key.h"
#include "tiers/prefix_loader.h"

namespace pando {

// The explanation of a prompt, and what the tiers keep of the prompt.
class TieredExplanation final : public Explanation {
 public:
  TieredExplanation(const NamespaceKey& ns, std::span<const Token> tokens,
                    Kept kept)
      : Explanation(ns, tokens), kept_(kept) {}

  Kept kept() const { return kept_; }

 private:
  Kept kept_;
};

}  // namespace pando

#endif  // PANDO_SERVICE_HANDLERS_TIERED_EXPLANATION_H_
