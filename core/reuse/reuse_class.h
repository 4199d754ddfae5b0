#ifndef PANDO_CORE_REUSE_REUSE_CLASS_H_
#define PANDO_CORE_REUSE_REUSE_CLASS_H_

#include <cstdint>

namespace pando {

// ReuseTables learns for a class of pages at once. Pages are in the same class
// if they agree in: how often they were used, how much time lay between their
// last two uses, and the output and the new tokens of the request that used
// them last. Each is reduced to a few levels; together these give the number of
// the class.
struct ReuseClass {
  uint32_t uses = 0;        // 0 to 7
  uint32_t interval = 0;    // 0 to 7; 0: used once
  uint32_t output = 0;      // 0 to 3
  uint32_t new_tokens = 0;  // 0 to 7

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

// The level, for ReuseClass, of a number of uses, of an age or of a number of
// tokens.
uint32_t UsesLevel(uint32_t uses);
// `age` is the number of ticks between two uses.
uint32_t IntervalLevel(uint32_t age);
uint32_t OutputLevel(uint32_t tokens);
uint32_t NewTokensLevel(uint32_t tokens);

// Ages are counted in ticks and sorted into bins, whose bounds grow by the
// square root of two.
inline constexpr uint32_t kAgeBins = 40;
// The age, in ticks, at which a bin begins. AgeBound(kAgeBins) is the end of
// the last bin.
double AgeBound(uint32_t bin);
// AgeBound(bin), rounded up to a whole number of ticks.
uint32_t FirstAge(uint32_t bin);

}  // namespace pando

#endif  // PANDO_CORE_REUSE_REUSE_CLASS_H_
