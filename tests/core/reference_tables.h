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

// Counts and fits as ReuseTables does, in the plainest way: the hazard of each
// class and bin is worked out from the factors whenever it is asked for.
class ReferenceTables {
 public:
  ReferenceTables();

  void CountReached(uint32_t reuse_class, uint32_t bin, uint32_t pages);
  // Pages that reached `bin` are of another class than was thought.
  void Reclassify(uint32_t from, uint32_t to, uint32_t bin, uint32_t pages);
  void CountReused(uint32_t reuse_class, uint32_t bin, uint32_t pages);
  float Index(uint32_t reuse_class, uint32_t bin) const {
    return index_.at({reuse_class, bin});
  }
  void FitStep(float pages_a_request);
  // That a page with so many uses is used again before the age of 1,024.
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
  std::vector<Factor> fitted_;   // of the round that is under way
  // Sums of the factor that is being fitted: seen and expected.
  std::map<Key, std::pair<float, float>> sums_;
  uint32_t next_class_ = 0;
};

}  // namespace pando

#endif  // PANDO_TESTS_CORE_REFERENCE_TABLES_H_
