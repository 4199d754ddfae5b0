#ifndef PANDO_CORE_REUSE_REUSE_CLASS_H_
#define PANDO_CORE_REUSE_REUSE_CLASS_H_

#include <cstdint>

namespace pando {

// What is alike in pages for ReuseTables: how often they were used, how long
// ago the use before the last was, and two sizes of the request that used them
// last. Each is a number of few values; together they number the class.
struct ReuseClass {
  uint32_t uses = 0;        // of 8
  uint32_t interval = 0;    // of 8; 0: used once
  uint32_t output = 0;      // of 4
  uint32_t new_tokens = 0;  // of 8

  uint32_t number() const {
    return uses | interval << 3 | output << 6 | new_tokens << 8;
  }
  static ReuseClass FromNumber(uint32_t number) {
    return {number & 7, number >> 3 & 7, number >> 6 & 3, number >> 8 & 7};
  }
  friend bool operator==(const ReuseClass&, const ReuseClass&) = default;
};
inline constexpr uint32_t kUsesLevels = 8;
inline constexpr uint32_t kReuseClasses = kUsesLevels * 8 * 4 * 8;

uint32_t UsesLevel(uint32_t uses);
// The level of `age` ticks between two uses.
uint32_t IntervalLevel(uint32_t age);
uint32_t OutputLevel(uint32_t tokens);
uint32_t NewTokensLevel(uint32_t tokens);

// Ages are counted in ticks, and told apart in bins whose bounds grow by the
// square root of two.
inline constexpr uint32_t kAgeBins = 40;
// The first age of a bin; of kAgeBins: where the last one ends.
double AgeBound(uint32_t bin);
// The same as a whole number of ticks.
uint32_t FirstAge(uint32_t bin);

}  // namespace pando

#endif  // PANDO_CORE_REUSE_REUSE_CLASS_H_
