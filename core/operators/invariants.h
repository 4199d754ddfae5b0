#ifndef PANDO_CORE_OPERATORS_INVARIANTS_H_
#define PANDO_CORE_OPERATORS_INVARIANTS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/nodes/cache_audit.h"
#include "core/operators/block_check.h"
#include "core/parts/cache_parts.h"

namespace pando {

// Verifies the invariants of docs/design.md in steps, between which the cache
// is in use. An object and its neighbours are checked as they are when their
// turn comes; sums are compared once all their addends have been counted
// (CacheAudit).
//
// A sound cache gives no violation, whatever happens between the steps. Damage
// is found if it still exists when its turn comes. While a check is under way,
// changes of the cache cost a little more.
class InvariantCheck {
 public:
  // `parts` outlives the check. REQUIRES: no other check of `parts` is under
  // way.
  explicit InvariantCheck(CacheParts& parts);
  ~InvariantCheck();
  InvariantCheck(const InvariantCheck&) = delete;
  InvariantCheck& operator=(const InvariantCheck&) = delete;

  // Does a bounded part. Returns whether that was the last part.
  bool Step();
  // A sentence for each invariant that did not hold.
  std::vector<std::string> TakeViolations() { return std::move(violations_); }

 private:
  // The stages, in this order.
  enum class Stage {
    kLocks,
    kNodes,  // counted
    // Checks nodes and their neighbours, once all nodes are counted.
    kNeighbours,
    kPages,
    kNamespaces,
    kSessions,
    kBlocks,
    kTotals,
  };

  // Each does a part of its stage and returns whether the stage is over.
  bool CountLocks();
  bool CountNodes();
  bool CheckNeighbours();
  bool CheckPages();
  bool CheckNamespaces();
  bool CheckSessions();
  void CheckTotals();

  void CheckPending();
  void ExpectSums(const CacheAudit::Sums& counted, const CacheAudit::Sums& sums,
                  const char* of);
  void Expect(bool holds, const char* what) {
    if (!holds) violations_.emplace_back(what);
  }

  CacheParts& parts_;
  CacheAudit audit_;
  BlockCheck blocks_;
  Stage stage_ = Stage::kLocks;
  uint32_t next_ = 0;               // the next cell or page of the stage
  NamespaceNumber last_namespace_;  // the last one that was checked
  SessionNumber last_session_;
  std::vector<std::string> violations_;
};

}  // namespace pando

#endif  // PANDO_CORE_OPERATORS_INVARIANTS_H_
