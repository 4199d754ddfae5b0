#ifndef PANDO_CORE_OPERATORS_EARLIER_BLOCKS_H_
#define PANDO_CORE_OPERATORS_EARLIER_BLOCKS_H_

#include <cstddef>
#include <cstdint>

#include "base/ids.h"
#include "core/parts/stepped_work.h"

namespace pando {

// Gives one session the blocks that workers of an earlier process had locked or
// were to write, as locks and reservations of its own. Limits do not apply. It
// takes one step, before pandod serves calls.
class EarlierBlocks : public SteppedWork {
 public:
  explicit EarlierBlocks(SessionId session) : session_(session) {}

  bool Step(CacheParts& parts) override;

  // The number of those blocks, and the number of all ready blocks, locked or
  // not.
  size_t count() const { return count_; }
  uint64_t ready() const { return ready_; }

 private:
  const SessionId session_;
  size_t count_ = 0;
  uint64_t ready_ = 0;
};

}  // namespace pando

#endif  // PANDO_CORE_OPERATORS_EARLIER_BLOCKS_H_
