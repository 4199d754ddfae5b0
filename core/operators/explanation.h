#ifndef PANDO_CORE_OPERATORS_EXPLANATION_H_
#define PANDO_CORE_OPERATORS_EXPLANATION_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "core/operators/listings.h"
#include "core/parts/stepped_work.h"
#include "core/requests/namespace_key.h"
#include "core/requests/operator_results.h"

namespace pando {

// Finds out why a prompt matches as far as it does: where and why the match
// ends, which sessions hold locks on the matched prefix, and which other
// namespaces have more of the prompt. It changes nothing.
class Explanation : public SteppedWork {
 public:
  // `tokens` outlive the work.
  Explanation(NamespaceKey ns, std::span<const Token> tokens);

  bool Step(CacheParts& parts) override;
  // Moves the result out. REQUIRES: the last Step returned true.
  MatchExplanation Take();

 private:
  enum class Stage { kMatch, kLocks, kNamespaces, kOthers };

  void ExplainMatch(const CacheParts& parts);
  // Both do a part of their stage and return whether the stage is over.
  bool FindLocks(const CacheParts& parts);
  bool FindLongerMatches(const RadixTree& tree);

  NamespaceKey ns_;
  std::span<const Token> tokens_;
  Stage stage_ = Stage::kMatch;
  MatchExplanation result_;
  uint32_t next_lock_ = 0;  // the cell of the next lock
  OldestLocks locks_;
  NamespaceListing namespaces_;
  std::vector<NamespaceInfo> others_;
  size_t next_other_ = 0;
};

}  // namespace pando

#endif  // PANDO_CORE_OPERATORS_EXPLANATION_H_
