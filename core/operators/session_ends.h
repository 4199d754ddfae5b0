#ifndef PANDO_CORE_OPERATORS_SESSION_ENDS_H_
#define PANDO_CORE_OPERATORS_SESSION_ENDS_H_

#include <memory>
#include <vector>

#include "core/parts/stepped_work.h"

namespace pando {

// Releases what ended sessions still hold (locks, pages and blocks) and the
// memory of kinds that have ended. After its last step nothing of that is left.
class SessionEnds final : public SteppedWork {
 public:
  void Prepare() override { garbage_.clear(); }
  bool Step(CacheParts& parts) override {
    const bool has_more = parts.holdings.EndStep();
    garbage_ = parts.blocks.kinds().TakeGarbage();
    return !has_more;
  }

 private:
  // Deleted outside the mutex.
  std::vector<std::unique_ptr<KindIndex>> garbage_;
};

}  // namespace pando

#endif  // PANDO_CORE_OPERATORS_SESSION_ENDS_H_
