#ifndef PANDO_TESTS_CORE_REFERENCE_TABLES_H_
#define PANDO_TESTS_CORE_REFERENCE_TABLES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace pando {

// A naive ReuseTables: it counts and fits the same values, but works out the
// hazard of each class and bin from the factors whenever a caller asks for it.
class ReferenceTables {
 public:
  ReferenceTables();

  void CountReached(uint32_t reuse_class, uint32_t bin, uint32_t pages);
  // Moves pages that reached `bin` from the class in which they were counted to
  // another one.
  void Reclassify(uint32_t from, uint32_t to, uint32_t bin, uint32_t pages);
  void CountReused(uint32_t reuse_class, uint32_t bin, uint32_t pages);
  float Index(uint32_t reuse_class, uint32_t bin) const {
    return index_.at({reuse_class, bin});
  }
  void FitStep(float pages_a_request);
  // Returns the chance that a page with so many uses is used again before the
  // age of 1,024 ticks.
  double ChanceByUses(uint32_t uses_level) const;

 private:
  using Key = std::pair<uint32_t, uint32_t>;  // class or group, bin
  using Factor = std::map<Key, float>;

  static uint32_t GroupOf(uint32_t reuse_class, size_t factor);
  static float Hazard(std::span<const Factor> factors, uint32_t reuse_class,
                      uint32_t bin);
  void FitIndexes(uint32_t reuse_class, const std::vector<Factor>& factors);
  void FitFactor(float pages_a_request);

  std::map<Key, float> reached_;
  std::map<Key, float> reused_;
  std::map<Key, float> index_;
  std::vector<Factor> factors_;  // of the last round
  std::vector<Factor> fitted_;   // of the round in progress
  // Sums of the factor that is being fitted: seen and expected uses.
  std::map<Key, std::pair<float, float>> sums_;
  uint32_t next_class_ = 0;
};

}  // namespace pando

#endif  // PANDO_TESTS_CORE_REFERENCE_TABLES_H_
