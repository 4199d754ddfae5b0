#ifndef PANDO_TIERS_BLOCKS_WANTED_BLOCKS_H_
#define PANDO_TIERS_BLOCKS_WANTED_BLOCKS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "core/requests/block_requests.h"

namespace pando {

// Which keys are to be loaded, so that a call with these answers would find
// what its shape asks for: positions, in order. `kept`, one for each key, says
// which a tier has; it need not be right for keys that are in the memory.
std::vector<uint32_t> WantedBlocks(const BlockKeys& keys,
                                   std::span<const BlockPlace> answers,
                                   const std::vector<bool>& kept);

}  // namespace pando

#endif  // PANDO_TIERS_BLOCKS_WANTED_BLOCKS_H_
