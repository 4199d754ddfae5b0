// Runs random programs on tiers in memory and on disk and on naive references,
// and compares them. PANDO_TEST_SEED sets the first seed (default 1),
// PANDO_TEST_PROGRAMS the number of programs.

#include <unistd.h>

#include <cstdint>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/environment.h"
#include "tests/tiers/tier_program.h"

namespace pando::tier_program {
namespace {

using ::testing::IsEmpty;

constexpr uint64_t kPrograms = 25;
constexpr int kSteps = 100;

TEST(TierModelTest, RandomProgramsLeaveTheSameBlocksInTheSamePlaces) {
  const uint64_t first = FromEnvironment("PANDO_TEST_SEED", 1);
  const uint64_t programs = FromEnvironment("PANDO_TEST_PROGRAMS", kPrograms);
  for (uint64_t seed = first; seed < first + programs; ++seed) {
    std::mt19937 random(seed);
    TierProgram program(
        [&](uint32_t limit) { return random() % limit; },
        absl::StrCat(testing::TempDir(), "tier_model_test.", getpid()));
    for (int i = 0; i < kSteps; ++i) {
      ASSERT_THAT(program.Step(), IsEmpty())
          << "PANDO_TEST_SEED=" << seed
          << " PANDO_TEST_PROGRAMS=1, after the last of\n"
          << program.listing();
    }
  }
}

}  // namespace
}  // namespace pando::tier_program
