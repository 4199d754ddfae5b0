// Runs the bytes as a program of calls on blocks. BlockCache must give the same
// answers as the naive model.

#include <fuzzer/FuzzedDataProvider.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>

#include "tests/core/block_program.h"

namespace {

constexpr int kMaxOperations = 500;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FuzzedDataProvider bytes(data, size);
  const uint32_t kinds = bytes.ConsumeIntegralInRange<uint32_t>(1, 3);
  pando::BlockProgram program(
      [&bytes](uint32_t limit) {
        return bytes.ConsumeIntegralInRange<uint32_t>(0, limit - 1);
      },
      kinds);
  for (int i = 0; i < kMaxOperations && bytes.remaining_bytes() > 0; ++i) {
    const std::string error = program.Step();
    if (error.empty()) continue;
    std::cerr << "step " << i << ", " << kinds << " kinds, " << program.last()
              << ": " << error << '\n';
    std::abort();
  }
  return 0;
}
