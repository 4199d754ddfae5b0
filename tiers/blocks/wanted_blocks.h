#ifndef PANDO_TIERS_BLOCKS_WANTED_BLOCKS_H_
#define PANDO_TIERS_BLOCKS_WANTED_BLOCKS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/requests/block_requests.h"

namespace pando {

// Returns whether a shape asks for a row of blocks, which is searched from the
// end of the keys.
inline bool IsRow(BlockShape shape) {
  return shape == BlockShape::kWindow || shape == BlockShape::kCheckpoint;
}

// Returns the positions, in order, of the keys that must be loaded so that a
// call with these answers would find the blocks that its shape asks for. `kept`
// says for each key whether a tier has it; it is ignored for keys that are in
// the memory.
std::vector<uint32_t> WantedBlocks(const BlockKeys& keys,
                                   std::span<const BlockPlace> answers,
                                   const std::vector<bool>& kept);

}  // namespace pando

#endif  // PANDO_TIERS_BLOCKS_WANTED_BLOCKS_H_
