#ifndef PANDO_CORE_OPERATORS_SESSION_ENDS_H_
#define PANDO_CORE_OPERATORS_SESSION_ENDS_H_

#include <memory>
#include <vector>

#include "core/parts/stepped_work.h"

namespace pando {

// Takes away what sessions that have ended still hold: locks, pages and blocks;
// and the memory of kinds that ended with them. All that there is when it takes
// its last step is gone then.
class SessionEnds final : public SteppedWork {
 public:
  void Prepare() override { garbage_.clear(); }
  bool Step(CacheParts& parts) override {
    const bool has_more = parts.holdings.EndStep();
    garbage_ = parts.blocks.kinds().TakeGarbage();
    return !has_more;
  }

 private:
  std::vector<std::unique_ptr<KindIndex>> garbage_;  // outlives the hold
};

}  // namespace pando

#endif  // PANDO_CORE_OPERATORS_SESSION_ENDS_H_
