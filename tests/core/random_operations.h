#ifndef PANDO_TESTS_CORE_RANDOM_OPERATIONS_H_
#define PANDO_TESTS_CORE_RANDOM_OPERATIONS_H_

#include <cstdint>
#include <random>

#include "tests/core/operations.h"

namespace pando::program {

// An endless program drawn from a seed: mostly what engines do, over few
// prompts so that they collide, and some of everything that is wrong.
class RandomOperations {
 public:
  RandomOperations(uint64_t seed, uint32_t page_tokens)
      : random_(seed), page_tokens_(page_tokens) {}

  Operation Next();

 private:
  uint32_t Below(uint32_t limit) {
    return static_cast<uint32_t>(random_() % limit);
  }
  bool Percent(uint32_t chance) { return Below(100) < chance; }
  uint8_t Slot() { return static_cast<uint8_t>(Below(kSlots)); }
  uint8_t Pages(uint32_t limit) { return static_cast<uint8_t>(Below(limit)); }
  Prompt AnyPrompt();
  LockChoice AnyLock();
  Fault AnyFault();
  Operation AnyMatch();
  Operation AnyInsert();
  Operation AnySessionEvent();

  std::mt19937_64 random_;
  const uint32_t page_tokens_;
};

}  // namespace pando::program

#endif  // PANDO_TESTS_CORE_RANDOM_OPERATIONS_H_
