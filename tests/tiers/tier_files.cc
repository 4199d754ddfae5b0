#include "tests/tiers/tier_files.h"

#include <cstring>
#include <fstream>

#include "base/check.h"

namespace pando::tier_program {

std::vector<std::optional<uint64_t>> RecordsIn(const std::string& folder,
                                               size_t slots) {
  std::ifstream index(folder + "/index", std::ios::binary);
  index.seekg(kHeaderBytes);
  std::vector<std::optional<uint64_t>> numbers;
  for (size_t slot = 0; slot < slots; ++slot) {
    char record[kRecordBytes] = {};
    CHECK(index.read(record, sizeof(record)).good());
    uint64_t number = 0;
    std::memcpy(&number, record, sizeof(number));
    numbers.push_back(number == 0 ? std::nullopt : std::optional(number));
  }
  return numbers;
}

void FlipBit(const std::string& folder, uint64_t offset) {
  const auto at = static_cast<std::streamoff>(offset);
  std::fstream segment(folder + "/segment-00000",
                       std::ios::in | std::ios::out | std::ios::binary);
  segment.seekg(at);
  const int byte = segment.get();
  segment.seekp(at);
  segment.put(static_cast<char>(byte ^ 1));
}

}  // namespace pando::tier_program
