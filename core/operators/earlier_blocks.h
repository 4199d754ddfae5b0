#ifndef PANDO_CORE_OPERATORS_EARLIER_BLOCKS_H_
#define PANDO_CORE_OPERATORS_EARLIER_BLOCKS_H_

#include <cstddef>
#include <cstdint>

#include "base/ids.h"
#include "core/parts/stepped_work.h"

namespace pando {

// Gives one session the blocks that workers of the process before had locked,
// or were to write, as locks and reservations of its own, whatever limits say.
// It takes one step, before calls are served.
class EarlierBlocks : public SteppedWork {
 public:
  explicit EarlierBlocks(SessionId session) : session_(session) {}

  bool Step(CacheParts& parts) override;

  // Those blocks; and all that can be found, locked or not.
  size_t count() const { return count_; }
  uint64_t ready() const { return ready_; }

 private:
  const SessionId session_;
  size_t count_ = 0;
  uint64_t ready_ = 0;
};

}  // namespace pando

#endif  // PANDO_CORE_OPERATORS_EARLIER_BLOCKS_H_
