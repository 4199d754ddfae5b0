#ifndef PANDO_CORE_NODES_RUN_H_
#define PANDO_CORE_NODES_RUN_H_

#include <cstdint>

namespace pando {

// Names a run of pages in History: it is the cell of a cached node, or, with
// kGhostBit, the slot of a ghost.
using RunLink = uint32_t;
inline constexpr RunLink kNoRun = 0xffff'ffff;
inline constexpr RunLink kGhostBit = 0x8000'0000;

inline bool IsGhost(RunLink link) { return (link & kGhostBit) != 0; }

// The facts that ReuseLearner keeps of a run of pages: of a cached node, or of
// a ghost. Plain data: a member of the node or ghost, changed only by
// ReuseLearner and its parts.
struct Run {
  RunLink older = kNoRun;  // links of History
  RunLink newer = kNoRun;
  uint32_t at = 0;  // the tick of the last use
  uint16_t reuse_class : 15 = 0;
  uint16_t is_in_shadow : 1 = 0;  // wholly or in part, see ShadowLru
  uint8_t uses = 0;               // 255: or more
  uint8_t bin = 0;                // the bin of its age, see reuse_class.h
};
static_assert(sizeof(Run) == 16);

}  // namespace pando

#endif  // PANDO_CORE_NODES_RUN_H_
