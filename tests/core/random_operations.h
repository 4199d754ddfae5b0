#ifndef PANDO_TESTS_CORE_RANDOM_OPERATIONS_H_
#define PANDO_TESTS_CORE_RANDOM_OPERATIONS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "tests/core/operations.h"

namespace pando::program {

// A function that returns a number below `limit`, drawn from a seed or from a
// fuzzer's bytes.
using Choices = std::function<uint32_t(uint32_t limit)>;
Choices ChoicesOf(uint64_t seed);

// An endless program drawn from choices. Most operations are those of engines,
// over few prompts so that prompts collide. The rest are wrong in every way
// that the cache must refuse.
class RandomOperations {
 public:
  // Most prompts are in the namespace `main_namespace`.
  RandomOperations(Choices choices, uint32_t page_tokens,
                   uint8_t main_namespace)
      : below_(std::move(choices)),
        page_tokens_(page_tokens),
        main_namespace_(main_namespace) {}

  Operation Next();

 private:
  uint32_t Below(uint32_t limit) { return below_(limit); }
  bool Percent(uint32_t chance) { return Below(100) < chance; }
  uint8_t Slot() { return static_cast<uint8_t>(Below(kSlots)); }
  uint8_t Pages(uint32_t limit) { return static_cast<uint8_t>(Below(limit)); }
  uint8_t AnyWriter();
  uint8_t AnyNamespace();
  Prompt AnyPrompt();
  LockChoice AnyLock();
  Fault AnyFault();
  HandleChoice AnyHandle();
  uint8_t AnyRequestId();
  std::optional<uint16_t> AnyMaxTokens(const Prompt& prompt);
  Operation AnyMatch();
  Operation AnyInsert();
  Operation AnyAllocate();
  Operation AnyOperatorsCall();
  Operation AnySessionEvent();

  const Choices below_;
  const uint32_t page_tokens_;
  const uint8_t main_namespace_;
};

}  // namespace pando::program

#endif  // PANDO_TESTS_CORE_RANDOM_OPERATIONS_H_
