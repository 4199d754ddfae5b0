// Runs the bytes as a program of operations. PrefixCache must give the same
// answers as the naive reference.

#include <fuzzer/FuzzedDataProvider.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "tests/core/executor.h"
#include "tests/core/program_grid.h"

namespace pando::program {
namespace {

constexpr size_t kMaxOperations = 1'000;

// Prints the operations of the program and the differences, and ends the
// process.
[[noreturn]] void Fail(const GridPoint& point,
                       const std::vector<Operation>& program,
                       const std::vector<std::string>& differences) {
  std::cerr << point << '\n';
  for (const Operation& operation : program) std::cerr << operation << '\n';
  for (const std::string& difference : differences) {
    std::cerr << "! " << difference << '\n';
  }
  std::abort();
}

void RunProgram(FuzzedDataProvider& bytes) {
  const Choices choices = [&bytes](uint32_t limit) {
    return bytes.ConsumeIntegralInRange<uint32_t>(0, limit - 1);
  };
  const GridPoint point = AnyGridPoint(choices);
  Executor executor(OptionsAt(point));
  RandomOperations operations = OperationsAt(point, choices);
  std::vector<Operation> program;
  while (bytes.remaining_bytes() > 0 && program.size() < kMaxOperations) {
    program.push_back(operations.Next());
    const auto differences = executor.Run(program.back());
    if (!differences.empty()) Fail(point, program, differences);
  }
}

}  // namespace
}  // namespace pando::program

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FuzzedDataProvider bytes(data, size);
  pando::program::RunProgram(bytes);
  return 0;
}
