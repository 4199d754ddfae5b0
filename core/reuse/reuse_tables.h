#ifndef PANDO_CORE_REUSE_REUSE_TABLES_H_
#define PANDO_CORE_REUSE_REUSE_TABLES_H_

#include <array>
#include <bitset>
#include <cstdint>

#include "core/reuse/reuse_class.h"

namespace pando {

// Learns how likely pages of a class and age are to be used again, from what
// happened to earlier pages of that class and age, and computes from that an
// index: what it is worth to keep them.
//
// It counts, for each class, how many pages reached a bin of age and how many
// were used in it. From these counts it fits a hazard: the chance that a page
// which reaches a bin is used in it. The hazard is the product of a prior and
// of five factors: one for all classes, one each for the levels of uses, last
// interval, output and new tokens. Each factor is chosen so that the expected
// uses of its classes equal the uses that were seen. The index of a class and
// bin is the best ratio of the chance of reuse to the ticks of waiting, over
// all times that one might wait (a Gittins index).
//
// The fit runs in small steps, one round after the other, so that no call waits
// for it. From round to round, old counts fade. It is deterministic: the same
// calls give the same numbers. Owned by ReuseLearner; not thread-safe.
class ReuseTables {
 public:
  ReuseTables();

  // Counts `pages` pages of the class that reached the bin.
  void CountReached(uint32_t reuse_class, uint32_t bin, uint32_t pages);
  // The same for pages that were counted before, in an earlier bin.
  void CountAged(uint32_t reuse_class, uint32_t bin, uint32_t pages) {
    reached_[reuse_class][bin] += static_cast<float>(pages);
  }
  // Counts `pages` pages of the class that were used in the bin.
  void CountReused(uint32_t reuse_class, uint32_t bin, uint32_t pages) {
    reused_[reuse_class][bin] += static_cast<float>(pages);
  }
  // Moves the counts of pages that have reached `bin` from one class to
  // another.
  void Reclassify(uint32_t from, uint32_t to, uint32_t bin, uint32_t pages);

  // REQUIRES: IsKnown(reuse_class). Fits the indexes of the class if that was
  // not done since they changed.
  float index(uint32_t reuse_class, uint32_t bin) const {
    if (!is_fitted_[reuse_class]) FitIndex(reuse_class, FactorsOf(reuse_class));
    return index_[reuse_class][bin];
  }
  // The fitted chance that a page of the class which has reached `bin` is used
  // again in that or a later bin.
  double ChanceOfReuse(uint32_t reuse_class, uint32_t bin) const;
  // The fitted chance that a page with this level of uses is used again within
  // 1,024 ticks. It leaves the other three factors out.
  double ChanceByUses(uint32_t uses_level) const;
  // Whether any page of the class was ever counted.
  bool IsKnown(uint32_t reuse_class) const { return known_[reuse_class]; }

  // Does a bounded part of the fit, at `tick`. `pages_a_request` is the average
  // number of new pages in a request. Returns the classes whose indexes
  // changed: from `first` to before `end`.
  struct Refitted {
    uint32_t first = 0;
    uint32_t end = 0;
  };
  Refitted FitStep(uint32_t tick, float pages_a_request);

 private:
  using Row = std::array<float, kAgeBins>;
  // The factors are: all classes, uses, interval, output, new tokens.
  static constexpr uint32_t kFactors = 5;
  using Factors = std::array<std::array<Row, 8>, kFactors>;

  // The level of the class that a factor distinguishes.
  static uint32_t GroupOf(uint32_t reuse_class, uint32_t factor);
  // The hazards of a class, computed with only the first `count` factors.
  static Row HazardsOf(const Factors& factors, uint32_t reuse_class,
                       uint32_t count);
  // Parts of the fit: add a class to expected_ and seen_, compute a factor from
  // these, compute the indexes of a class, and let its counts fade.
  void SumUp(uint32_t reuse_class, uint32_t factor);
  void EndFactor(uint32_t factor, float pages_a_request);
  void FitIndex(uint32_t reuse_class, const Factors& factors) const;
  void Fade(uint32_t reuse_class);
  void BeginRound(uint32_t tick);
  // The factors of the last round that has passed the class.
  const Factors& FactorsOf(uint32_t reuse_class) const {
    return part_ == kFactors && reuse_class < next_class_ ? fitted_ : factors_;
  }

  std::array<Row, kReuseClasses> reached_{};
  std::array<Row, kReuseClasses> reused_{};
  // The indexes, and whether those of a class are fitted. They are fitted only
  // when they are asked for, because many classes have no leaf.
  mutable std::array<Row, kReuseClasses> index_{};
  mutable std::bitset<kReuseClasses> is_fitted_;
  std::bitset<kReuseClasses> known_;  // IsKnown, by class
  Factors factors_;                   // those of the last finished round
  // The round under way. `part_` is the factor that is fitted; after the last
  // factor come the indexes. `next_class_` is the class that comes next, and
  // `step_work_` the amount of work in a step.
  Factors fitted_;
  std::array<Row, 8> expected_{};  // of uses, by group of the factor
  std::array<Row, 8> seen_{};
  uint32_t part_ = 0;
  uint32_t next_class_ = 0;
  uint32_t step_work_ = 0;
  bool fades_ = false;
};
static_assert(sizeof(ReuseTables) <= 1 << 20);

}  // namespace pando

#endif  // PANDO_CORE_REUSE_REUSE_TABLES_H_
