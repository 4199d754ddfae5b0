// Runs the bytes as a program of stores, loads, flushes, restarts and damages.
// After each step, the tiers in memory and on disk must have the blocks that
// the naive references say.

#include <fuzzer/FuzzedDataProvider.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/tiers/tier_program.h"

namespace pando::tier_program {
namespace {

constexpr int kMaxSteps = 200;

void RunProgram(FuzzedDataProvider& bytes) {
  // The folder is in memory, where files are fast.
  const std::string folder = absl::StrCat("/dev/shm/tier_fuzzer.", getpid());
  TierProgram program(
      [&](uint32_t limit) {
        return bytes.ConsumeIntegralInRange<uint32_t>(0, limit - 1);
      },
      folder);
  for (int i = 0; bytes.remaining_bytes() > 0 && i < kMaxSteps; ++i) {
    const std::vector<std::string> differences = program.Step();
    if (differences.empty()) continue;
    std::cerr << program.listing();
    for (const std::string& difference : differences) {
      std::cerr << "! " << difference << '\n';
    }
    std::abort();
  }
}

}  // namespace
}  // namespace pando::tier_program

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FuzzedDataProvider bytes(data, size);
  pando::tier_program::RunProgram(bytes);
  return 0;
}
