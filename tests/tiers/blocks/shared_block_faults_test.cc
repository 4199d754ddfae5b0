#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "tests/tiers/blocks/shared_machines.h"

namespace pando {
namespace {

namespace fs = std::filesystem;
using testing::Each;
using SharedBlockFaultsTest = SharedMachines;

TEST_F(SharedBlockFaultsTest, DamagedBlocksAreMissesAndErased) {
  const auto one = Machine();
  one->Store(one->Open("a", kShard), {1, 2, 3}, 7);
  one->AwaitStores();
  const std::vector<fs::path> files = Files();
  ASSERT_EQ(files.size(), 3u);
  fs::resize_file(files[0], 100);
  std::fstream(files[1], std::ios::in | std::ios::out | std::ios::binary)
      .seekp(2'000)
      .put('x');
  const auto other = Machine();
  const auto places = other->Load(other->Open("a", kShard), {1, 2, 3});
  EXPECT_EQ(std::ranges::count_if(places, IsPlace), 1);
  EXPECT_EQ(FiguresOf(*other).damaged_blocks, 2u);
  EXPECT_EQ(Files().size(), 1u);
}

TEST_F(SharedBlockFaultsTest, BlocksThatAnotherSecretSignedAreNotLoaded) {
  const std::string ours(32, 'a');
  const std::string theirs(32, 'b');
  const auto one = Machine(ours);
  one->Store(one->Open("a", kShard), {1}, 7);
  one->AwaitStores();
  const auto same = Machine(ours);
  const BlockKind kind = same->Open("a", kShard);
  ExpectHolds(*same, kind, {1}, same->Load(kind, {1}), 7);
  const auto other = Machine(theirs);
  EXPECT_THAT(other->Load(other->Open("a", kShard), {1}), Each(kMissingBlock));
  EXPECT_EQ(FiguresOf(*other).damaged_blocks, 1u);
}

TEST_F(SharedBlockFaultsTest, AStoreThatFailsMakesMissesAndIsRefused) {
  faults_.fails = true;
  const auto machine = Machine();
  const BlockKind kind = machine->Open("a", kShard);
  for (uint32_t number = 0; number < 3; ++number) {
    EXPECT_THAT(machine->Load(kind, {number}), Each(kMissingBlock));
  }
  EXPECT_TRUE(FiguresOf(*machine).are_loads_refused);
  const int asked = faults_.touches;
  EXPECT_THAT(machine->Load(kind, {3}), Each(kMissingBlock));
  EXPECT_EQ(faults_.touches, asked);
  for (uint32_t number = 10; number < 13; ++number) {
    machine->Store(kind, {number}, 7);
    machine->AwaitStores();
  }
  EXPECT_TRUE(FiguresOf(*machine).are_stores_refused);
  faults_.fails = false;
  uint32_t next = 100;
  Await([&] {
    machine->Store(kind, {next++}, 7);
    return FiguresOf(*machine).stored_blocks > 0;
  });
  EXPECT_FALSE(FiguresOf(*machine).are_stores_refused);
}

// Calls do not wait for such a store, and no memory stays reserved for blocks
// that the store does not give.
TEST_F(SharedBlockFaultsTest, AStoreThatHangsHoldsUpNothing) {
  absl::Notification goes_on;
  faults_.before_call = [&] { goes_on.WaitForNotification(); };
  const auto machine = Machine("", {.ask = absl::Milliseconds(20),
                                    .get = absl::Milliseconds(20),
                                    .put = absl::Milliseconds(20)});
  const BlockKind kind = machine->Open("a", kShard);
  machine->Store(kind, {1}, 7);
  EXPECT_THAT(machine->Load(kind, {5, 6}), Each(kMissingBlock));
  EXPECT_EQ(machine->blocks().Stats().reservations, 0u);
  EXPECT_GT(FiguresOf(*machine).failed_reads, 0u);
  goes_on.Notify();
}

// Other blocks can be read, so the tier does not refuse loads from the store.
TEST_F(SharedBlockFaultsTest,
       ABlockThatCannotBeReadIsMissingAndNotPendingForEver) {
  const auto one = Machine();
  one->Store(one->Open("a", kShard), {1, 2, 3}, 7);
  one->AwaitStores();
  const auto other = Machine();
  const BlockKind kind = other->Open("a", kShard);
  faults_.unreadable = TierKeyOf(TieredMemory::KeyOf(2));
  const auto places = other->Load(kind, {1, 2, 3});
  ExpectHolds(*other, kind, {1, 3}, {places[0], places[2]}, 7);
  EXPECT_EQ(places[1], kMissingBlock);
}

// Two machines publish, load and reset rows of blocks together, with damaged
// files and failures meanwhile. A block that is found always has the bytes of
// its key and of the last reset.
TEST_F(SharedBlockFaultsTest, NeverGivesAWrongByteInRandomProgramsWithFaults) {
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const auto below = [&](uint32_t n) { return random() % n; };
  std::unique_ptr<TieredMemory> machines[2];
  BlockKind kinds[2];
  const auto start = [&](int which) {
    machines[which] = nullptr;
    machines[which] = Machine();
    kinds[which] = machines[which]->Open("a", kShard);
  };
  start(0);
  start(1);
  uint64_t resets = 1;
  uint64_t found = 0;
  uint64_t loaded = 0;
  for (int step = 0; step < 300; ++step) {
    const uint32_t which = below(2);
    TieredMemory& machine = *machines[which];
    Numbers row(1 + below(6));
    std::iota(row.begin(), row.end(), below(60));
    const uint32_t action = below(100);
    if (action < 45) {
      machine.Store(kinds[which], row, resets);
    } else if (action < 90) {
      const auto places = machine.Load(kinds[which], row);
      for (size_t i = 0; i < row.size(); ++i) {
        if (!IsPlace(places[i])) continue;
        ++found;
        ASSERT_TRUE(machine.Holds(kinds[which], places[i], row[i], resets))
            << "block " << row[i];
      }
    } else if (action < 92) {
      // Both machines restart, so that no earlier block is stored after the
      // reset.
      for (const int each : {0, 1}) {
        loaded += FiguresOf(*machines[each]).loaded_blocks;
        start(each);
      }
      kinds[0] = machines[0]->Reset(kinds[0]);
      ++resets;
      Await([&] { return Files().empty(); });
      start(1);
    } else if (action < 94) {
      faults_.fails = !faults_.fails;
    } else {
      for (const auto& file : Files()) {
        if (below(8) == 0) Damage(file, random);
      }
    }
  }
  for (const auto& machine : machines) {
    loaded += FiguresOf(*machine).loaded_blocks;
    EXPECT_THAT(machine->cache().CheckInvariants(), testing::IsEmpty());
  }
  EXPECT_GT(found, 0u);
  EXPECT_GT(loaded, 0u);
}

}  // namespace
}  // namespace pando
