#include "tiers/blocks/wanted_blocks.h"

#include <algorithm>

namespace pando {
namespace {

// kReadyBlock is the answer for a block that a call with `all` found and did
// not lock.
bool IsInMemory(BlockPlace answer) {
  return IsPlace(answer) || answer == kReadyBlock || answer == kPendingBlock;
}

}  // namespace

std::vector<uint32_t> WantedBlocks(const BlockKeys& keys,
                                   std::span<const BlockPlace> answers,
                                   const std::vector<bool>& kept) {
  const auto count = static_cast<uint32_t>(answers.size());
  std::vector<uint32_t> wanted;
  if (!IsRow(keys.shape)) {
    for (uint32_t i = 0; i < count; ++i) {
      if (IsInMemory(answers[i])) continue;
      if (kept[i]) {
        wanted.push_back(i);
      } else if (keys.shape == BlockShape::kPrefix) {
        break;
      }
    }
    return wanted;
  }
  const uint32_t window =
      keys.shape == BlockShape::kCheckpoint ? 1 : keys.window;
  uint32_t row = 0;
  for (uint32_t i = count; i-- > 0 && row < window;) {
    if (IsInMemory(answers[i])) {
      ++row;
    } else if (kept[i]) {
      ++row;
      wanted.push_back(i);
    } else {
      row = 0;
      wanted.clear();
    }
  }
  std::reverse(wanted.begin(), wanted.end());
  return wanted;
}

}  // namespace pando
