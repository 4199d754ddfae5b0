#ifndef PANDO_CORE_REUSE_RUN_H_
#define PANDO_CORE_REUSE_RUN_H_

#include <cstdint>

namespace pando {

// Names a run of pages in History: it is the cell of a cached node, or, with
// kGhostBit, the slot of a ghost.
using RunLink = uint32_t;
inline constexpr RunLink kNoRun = 0xffff'ffff;
inline constexpr RunLink kGhostBit = 0x8000'0000;

inline bool IsGhost(RunLink link) { return (link & kGhostBit) != 0; }

// The facts that ReuseLearner keeps of a run of pages: of a cached node, or of
// a ghost. Plain data, changed only by ReuseLearner and its parts.
struct Run {
  RunLink older = kNoRun;  // links of History
  RunLink newer = kNoRun;
  uint32_t at = 0;  // the tick of the last use
  uint32_t pages = 0;
  uint16_t reuse_class : 11 = 0;
  uint16_t is_in_shadow : 1 = 0;  // wholly or in part, see ShadowLru
  uint16_t is_listed : 1 = 0;     // its node is in a bucket of ReusePolicy
  uint8_t uses = 0;               // 255: or more; 0: not known
  uint8_t bin = 0;                // the bin of its age, see reuse_class.h
};
static_assert(sizeof(Run) == 20);

}  // namespace pando

#endif  // PANDO_CORE_REUSE_RUN_H_
