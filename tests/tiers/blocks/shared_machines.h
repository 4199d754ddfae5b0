#ifndef PANDO_TESTS_TIERS_BLOCKS_SHARED_MACHINES_H_
#define PANDO_TESTS_TIERS_BLOCKS_SHARED_MACHINES_H_

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "core/nodes/page_hash.h"
#include "gtest/gtest.h"
#include "tests/tiers/blocks/tiered_memory.h"
#include "tiers/blocks/shared_block_tier.h"

namespace pando {

// Makes the calls of a store fail, or watches them.
struct Faults {
  std::atomic<bool> fails = false;
  std::atomic<int> touches = 0;
  std::atomic<int> touched = 0;        // the keys of these calls
  std::optional<PageHash> unreadable;  // Get fails for this block
  std::function<void()> before_call = [] {};
  std::function<void()> before_put = [] {};
  std::function<void()> after_put = [] {};
};

// Starts machines that share blocks in a folder. Calls of the folder's store
// meet `faults_`.
class SharedMachines : public testing::Test {
 protected:
  using Numbers = std::vector<uint32_t>;

  static constexpr uint64_t kShard = 3'000;
  static constexpr uint64_t kMemory = 8 * TieredMemory::kExtentBytes;
  // The store answers before these timeouts, however slow the machine is.
  static constexpr SharedBlockTier::Timeouts kPatient = {
      .ask = absl::Hours(1), .get = absl::Hours(1), .put = absl::Hours(1)};

  SharedMachines();
  ~SharedMachines() override;

  // Starts a machine. The machine has a disk tier if `disk` names a folder.
  std::unique_ptr<TieredMemory> Machine(
      std::string_view secret = "",
      const SharedBlockTier::Timeouts& timeouts = kPatient,
      const BlockFiles::Config& disk = {});
  static void ExpectHolds(TieredMemory& machine, const BlockKind& kind,
                          const Numbers& numbers,
                          const std::vector<BlockPlace>& places, uint64_t seed);
  static BlockTierFigures FiguresOf(TieredMemory& machine) {
    return *machine.tier().figures().shared;
  }
  static void Await(const std::function<bool()>& is_so);
  std::vector<std::filesystem::path> Files() const { return FilesIn(folder_); }

  const std::string folder_;
  Faults faults_;
};

}  // namespace pando

#endif  // PANDO_TESTS_TIERS_BLOCKS_SHARED_MACHINES_H_
