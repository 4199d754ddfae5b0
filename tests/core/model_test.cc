// Random programs give the same answers on PrefixCache as on the naive
// reference. PANDO_TEST_SEED runs the programs of another seed (default 1),
// PANDO_TEST_OPERATIONS another number of operations.

#include <algorithm>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/environment.h"
#include "tests/core/executor.h"
#include "tests/core/random_operations.h"

namespace pando::program {
namespace {

using ::testing::IsEmpty;

constexpr uint64_t kOperationsOfAProgram = 500;
constexpr uint64_t kProgramsToJudge = 40;

std::string Listing(const std::vector<Operation>& program) {
  std::ostringstream out;
  for (const Operation& operation : program) out << operation << '\n';
  return out.str();
}

class ModelTest : public testing::TestWithParam<uint32_t> {
 protected:
  // Each program has a pool of its own size, from hopeless to roomy.
  void RunProgram(uint64_t seed) {
    const uint32_t page_tokens = GetParam();
    const auto capacity = static_cast<uint32_t>(2 + seed * 7 % 46);
    Executor executor({page_tokens, capacity});
    RandomOperations operations(seed, page_tokens);
    std::vector<Operation> program;
    for (uint64_t i = 0; i < kOperationsOfAProgram; ++i) {
      program.push_back(operations.Next());
      const auto differences = executor.Run(program.back());
      ASSERT_THAT(differences, IsEmpty())
          << "after the last operation of, with " << capacity
          << " pages of capacity,\n"
          << Listing(program);
    }
    succeeded_ += executor.succeeded();
    failed_ += executor.failed();
  }

  uint64_t succeeded_ = 0;
  uint64_t failed_ = 0;
};

TEST_P(ModelTest, RandomProgramsGiveTheSameAnswers) {
  const uint64_t seed = FromEnvironment("PANDO_TEST_SEED", 1);
  const uint64_t operations =
      FromEnvironment("PANDO_TEST_OPERATIONS", 200'000) / 3;
  const uint64_t programs =
      std::max<uint64_t>(1, operations / kOperationsOfAProgram);
  for (uint64_t i = 0; i < programs && !HasFatalFailure(); ++i) {
    SCOPED_TRACE("PANDO_TEST_SEED=" + std::to_string(seed + i) +
                 " PANDO_TEST_OPERATIONS=1");
    RunProgram(seed + i);
  }
  if (programs < kProgramsToJudge) return;
  // The programs are worth running: much succeeds, and much is refused.
  EXPECT_GT(succeeded_, failed_);
  EXPECT_GT(failed_, succeeded_ / 10);
}

INSTANTIATE_TEST_SUITE_P(PageTokens, ModelTest, testing::Values(1, 4, 16));

}  // namespace
}  // namespace pando::program
