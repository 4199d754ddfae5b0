#ifndef PANDO_CORE_REUSE_REUSE_TABLES_H_
#define PANDO_CORE_REUSE_REUSE_TABLES_H_

#include <array>
#include <bitset>
#include <cstdint>

#include "core/reuse/reuse_class.h"

namespace pando {

// How likely pages of a class and age are to be used again, learnt from what
// became of pages before them, and what that makes them worth.
//
// Counted are the pages of a class that reached a bin of age and those that
// were used in it. From that a hazard is fitted, the chance that a page which
// reaches a bin is used in it: the product of a prior and of one factor for all
// classes, for uses, for the last interval, for output and for new tokens, each
// of which makes the uses that are expected of its classes those that were
// seen. The index of a class and bin is the best chance of reuse for each tick
// of waiting, over all times that one might wait (a Gittins index).
//
// The fit goes on in small steps, a round after the other, so that no call
// waits for it; from a round to the next what was counted long ago fades. The
// same calls give the same numbers. Owned by ReuseLearner; not thread-safe.
class ReuseTables {
 public:
  ReuseTables();

  // `pages` of the class reached the bin.
  void CountReached(uint32_t reuse_class, uint32_t bin, uint32_t pages);
  // They were used in it.
  void CountReused(uint32_t reuse_class, uint32_t bin, uint32_t pages) {
    reused_[reuse_class][bin] += static_cast<float>(pages);
  }
  // Pages that reached `bin` are of another class than was thought.
  void Reclassify(uint32_t from, uint32_t to, uint32_t bin, uint32_t pages);

  // REQUIRES: pages of the class were counted.
  float index(uint32_t reuse_class, uint32_t bin) const {
    return index_[reuse_class][bin];
  }
  // The fitted chance that a page of the class is used between one bin and the
  // end of all.
  double ChanceOfReuse(uint32_t reuse_class, uint32_t bin) const;
  // The fitted chance that a page which was used so often, however it differs
  // else, is used again within 1,024 ticks.
  double ChanceByUses(uint32_t uses_level) const;
  bool IsKnown(uint32_t reuse_class) const { return known_[reuse_class]; }

  // A bounded part of the fit, at `tick`; requests bring so many new pages on
  // average. The indexes of the classes from `first` to before `end` changed.
  struct Refitted {
    uint32_t first = 0;
    uint32_t end = 0;
  };
  Refitted FitStep(uint32_t tick, float pages_a_request);

 private:
  using Row = std::array<float, kAgeBins>;
  // All classes; uses; interval; output; new tokens.
  static constexpr uint32_t kFactors = 5;
  using Factors = std::array<std::array<Row, 8>, kFactors>;

  static uint32_t GroupOf(uint32_t reuse_class, uint32_t factor);
  // The hazards of a class by the first `count` factors.
  static Row HazardsOf(const Factors& factors, uint32_t reuse_class,
                       uint32_t count);
  void SumUp(uint32_t reuse_class, uint32_t factor);
  void EndFactor(uint32_t factor, float pages_a_request);
  void FitIndex(uint32_t reuse_class, const Factors& factors);
  void Fade(uint32_t reuse_class);
  void BeginRound(uint32_t tick);

  std::array<Row, kReuseClasses> reached_{};
  std::array<Row, kReuseClasses> reused_{};
  std::array<Row, kReuseClasses> index_{};
  std::bitset<kReuseClasses> known_;  // that any page was ever of
  Factors factors_;                   // of the last round
  // The round that is under way: its part, which factor or, after the last,
  // the indexes; the class that comes next; what a step does.
  Factors fitted_;
  std::array<Row, 8> expected_{};  // uses, by group of the factor
  std::array<Row, 8> seen_{};
  uint32_t part_ = 0;
  uint32_t next_class_ = 0;
  uint32_t step_work_ = 0;
  bool fades_ = false;
};
static_assert(sizeof(ReuseTables) <= 1 << 20);

}  // namespace pando

#endif  // PANDO_CORE_REUSE_REUSE_TABLES_H_
