// The files of a tier, read as docs/tiers.md describes them.
#ifndef PANDO_TESTS_SERVICE_TIERS_TIER_FILES_H_
#define PANDO_TESTS_SERVICE_TIERS_TIER_FILES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pando::tier_program {

constexpr uint64_t kHeaderBytes = 4096;
constexpr uint64_t kRecordBytes = 64;
// A slot holds blocks that are no larger.
constexpr uint64_t kSlotBytes = 4096;

// The numbers of HashOf in the index, slot by slot; none: no record.
std::vector<std::optional<uint64_t>> RecordsIn(const std::string& folder,
                                               size_t slots);

// Flips a bit at an offset of the first segment.
void FlipBit(const std::string& folder, uint64_t offset);

}  // namespace pando::tier_program

#endif  // PANDO_TESTS_SERVICE_TIERS_TIER_FILES_H_
