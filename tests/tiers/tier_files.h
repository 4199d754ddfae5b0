// Reads and damages the files of a disk tier, which docs/tiers.md describes.
#ifndef PANDO_TESTS_TIERS_TIER_FILES_H_
#define PANDO_TESTS_TIERS_TIER_FILES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pando::tier_program {

constexpr uint64_t kHeaderBytes = 4096;
constexpr uint64_t kRecordBytes = 64;
// The size of a slot if blocks are no larger.
constexpr uint64_t kSlotBytes = 4096;

// Returns, for each slot, the number whose HashOf is in the slot's record in
// the index; none if the slot has no record.
std::vector<std::optional<uint64_t>> RecordsIn(const std::string& folder,
                                               size_t slots);

// Flips a bit of the byte at an offset in the first segment.
void FlipBit(const std::string& folder, uint64_t offset);

}  // namespace pando::tier_program

#endif  // PANDO_TESTS_TIERS_TIER_FILES_H_
