#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/tiers/blocks/shared_machines.h"

namespace pando {
namespace {

namespace fs = std::filesystem;
using testing::Each;
using SharedBlockTierTest = SharedMachines;

TEST_F(SharedBlockTierTest, AnotherMachineLoadsWhatOneHasPublished) {
  const Numbers numbers = {1, 2, 3};
  const auto one = Machine();
  one->Store(one->Open("a", kShard), numbers, 7);
  one->AwaitStores();
  EXPECT_EQ(FiguresOf(*one).stored_blocks, 3u);
  const auto other = Machine();
  const BlockKind kind = other->Open("a", kShard);
  ExpectHolds(*other, kind, numbers, other->Load(kind, numbers), 7);
  EXPECT_EQ(FiguresOf(*other).loaded_blocks, 3u);
  // A kind with another identity has none of these blocks.
  EXPECT_THAT(other->Load(other->Open("b", kShard), numbers),
              Each(kMissingBlock));
  EXPECT_THAT(other->cache().CheckInvariants(), testing::IsEmpty());
}

TEST_F(SharedBlockTierTest, WhatTheStoreHasIsNotStoredAgain) {
  const auto one = Machine();
  const auto other = Machine();
  one->Store(one->Open("a", kShard), {1, 2}, 7);
  one->AwaitStores();
  const int before = faults_.touches;
  other->Store(other->Open("a", kShard), {1, 2, 3}, 7);
  Await([&] { return FiguresOf(*other).stored_blocks == 1; });
  EXPECT_EQ(faults_.touches, before + 1);
}

TEST_F(SharedBlockTierTest, WhatTheStoreHasLostIsStoredAgain) {
  const auto machine = Machine();
  const BlockKind kind = machine->Open("a", kShard);
  machine->Store(kind, {1}, 7);
  machine->AwaitStores();
  ASSERT_EQ(Files().size(), 1u);
  fs::remove(Files().front());
  for (uint32_t number = 100; number < 200; ++number) {
    machine->Store(kind, {number}, 7);
    machine->AwaitStores();
  }
  EXPECT_THAT(machine->Load(kind, {1}), Each(kMissingBlock));
  machine->Store(kind, {1}, 7);
  machine->AwaitStores();
  EXPECT_EQ(FiguresOf(*machine).stored_blocks, 102u);
}

// The disk has blocks 1 to 3. Neither the disk nor the store has block 0.
TEST_F(SharedBlockTierTest, NothingBehindAHoleOfAPrefixIsLoadedFromDisk) {
  const std::string folder = absl::StrCat(folder_, "/disk");
  const uint64_t bytes = uint64_t{16} << 20;
  {
    TieredMemory before(folder, kMemory, bytes);
    before.Store(before.Open("a", kShard), {1, 2, 3}, 7);
    before.AwaitStores();
  }
  const auto machine = Machine("", kPatient, {folder, bytes});
  const BlockKind kind = machine->Open("a", kShard);
  const auto disk = [&] { return machine->tier().figures().disk; };
  Await([&] { return disk().held_blocks == 3; });
  EXPECT_THAT(machine->Load(kind, {0, 1, 2, 3}, BlockShape::kPrefix).front(),
              kMissingBlock);
  EXPECT_EQ(disk().loaded_blocks, 0u);
  const auto places = machine->Load(kind, {1, 2, 3}, BlockShape::kPrefix);
  ExpectHolds(*machine, kind, {1, 2, 3}, places, 7);
}

}  // namespace
}  // namespace pando
