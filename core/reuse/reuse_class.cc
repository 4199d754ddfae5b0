#include "core/reuse/reuse_class.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <iterator>
#include <span>

namespace pando {
namespace {

// How many of the sorted bounds are at most `value`.
uint32_t LevelOf(uint32_t value, std::span<const uint32_t> bounds) {
  return static_cast<uint32_t>(std::ranges::upper_bound(bounds, value) -
                               bounds.begin());
}

}  // namespace

uint32_t UsesLevel(uint32_t uses) {
  constexpr uint32_t kFrom[] = {2, 3, 4, 6, 9, 17, 65};
  return LevelOf(uses, kFrom);
}

// A level is one and a half octaves of age + 1.
uint32_t IntervalLevel(uint32_t age) {
  constexpr uint32_t kFrom[] = {2, 7, 22, 63, 181, 511};
  return 1 + LevelOf(age, kFrom);
}

uint32_t OutputLevel(uint32_t tokens) {
  constexpr uint32_t kFrom[] = {64, 256, 768};
  return LevelOf(tokens, kFrom);
}

uint32_t NewTokensLevel(uint32_t tokens) {
  const auto octave = static_cast<uint32_t>(std::bit_width(tokens / 256));
  return std::min(7u, octave - std::min(1u, octave));
}

double AgeBound(uint32_t bin) {
  return bin == 0 ? 0 : std::exp2((bin - 1) / 2.0);
}

uint32_t FirstAge(uint32_t bin) {
  // The bound of an odd bin is a whole power of two, so it is computed exactly,
  // without exp2.
  if (bin == 0) return 0;
  if (bin % 2 == 1) return 1u << (bin - 1) / 2;
  return static_cast<uint32_t>(std::ceil(AgeBound(bin)));
}

}  // namespace pando
