// Makes random calls on a BlockCache and on the naive model.

#include <cstdint>
#include <random>

#include "gtest/gtest.h"
#include "tests/core/block_program.h"

namespace pando {
namespace {

constexpr uint32_t kPrograms = 15;
constexpr uint32_t kSteps = 300;

void RunPrograms(uint32_t kinds) {
  const uint64_t first = std::random_device()();
  for (uint64_t seed = first; seed < first + kPrograms; ++seed) {
    BlockProgram program(program::ChoicesOf(seed), kinds);
    for (uint32_t i = 0; i < kSteps; ++i) {
      const std::string error = program.Step();
      ASSERT_EQ(error, "") << "step " << i << " of seed " << seed << ", "
                           << kinds << " kinds: " << program.last();
    }
  }
}

TEST(BlockModelTest, OneKindAnswersAsTheModelAndEvictsTheOldestLeaf) {
  RunPrograms(1);
}

TEST(BlockModelTest, ThreeKindsAnswerAsTheModelAndTakeNothingThatIsHeld) {
  RunPrograms(3);
}

}  // namespace
}  // namespace pando
