#include <atomic>
#include <numeric>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "tests/tiers/blocks/shared_machines.h"

namespace pando {
namespace {

using testing::Each;
using SharedAsksTest = SharedMachines;

TEST_F(SharedAsksTest, TheStoreIsAskedOnceForWhatItLacks) {
  const auto machine = Machine();
  const BlockKind kind = machine->Open("a", kShard);
  EXPECT_THAT(machine->Load(kind, {1, 2}), Each(kMissingBlock));
  EXPECT_EQ(faults_.touches, 1);
  EXPECT_THAT(machine->Load(kind, {1, 2}), Each(kMissingBlock));
  EXPECT_EQ(faults_.touches, 1);
}

TEST_F(SharedAsksTest, ACallThatDoesNotLoadDoesNotAsk) {
  const auto machine = Machine();
  const BlockKind kind = machine->Open("a", kShard);
  const std::string keys = TieredMemory::KeysOf({1});
  const BlockKeys asked = {.kind = kind.number, .keys = keys, .before = {}};
  auto places = *machine->blocks().Lookup(machine->session(), {&asked, 1});
  machine->Ask(
      {.session = machine->session(), .keys = {&asked, 1}, .looks = true},
      places);
  EXPECT_THAT(places, Each(kMissingBlock));
  EXPECT_EQ(faults_.touches, 0);
}

// One question finds the last row that the store has, however far the row is
// from the end.
TEST_F(SharedAsksTest, OnlyTheRowThatAShapeNeedsIsLoaded) {
  const auto one = Machine();
  one->Store(one->Open("a", kShard), {0, 1, 2, 3, 4, 5}, 7);
  one->AwaitStores();
  const auto other = Machine();
  const BlockKind kind = other->Open("a", kShard);
  const int before = faults_.touches;
  Numbers numbers(20);
  std::iota(numbers.begin(), numbers.end(), 0);
  const auto places = other->Load(kind, numbers, BlockShape::kWindow, 2);
  EXPECT_EQ(faults_.touches, before + 1);
  EXPECT_EQ(FiguresOf(*other).loaded_blocks, 2u);
  ExpectHolds(*other, kind, {4, 5}, {places[4], places[5]}, 7);
  const auto front = other->Load(kind, numbers, BlockShape::kPrefix);
  ExpectHolds(*other, kind, {0, 1, 2, 3}, {front.begin(), front.begin() + 4},
              7);
}

// The store lacks the first block. A prompt that is new to the store costs one
// short question.
TEST_F(SharedAsksTest, APrefixIsAskedForUntilItsEndIsFound) {
  Numbers numbers(1'000);
  std::iota(numbers.begin(), numbers.end(), 0);
  const auto machine = Machine();
  const BlockKind kind = machine->Open("a", kShard);
  EXPECT_EQ(machine->Load(kind, numbers, BlockShape::kPrefix).front(),
            kMissingBlock);
  EXPECT_EQ(faults_.touches, 1);
  EXPECT_EQ(faults_.touched, 64);
}

// The first call of the store is held until both sessions have asked.
TEST_F(SharedAsksTest, ALongQuestionOfOneSessionHoldsUpNoOther) {
  absl::Notification is_held;
  absl::Notification goes_on;
  const auto machine = Machine();
  const BlockKind kind = machine->Open("a", kShard);
  const SessionId other(2);
  machine->cache().OpenSession(other, "other engine");
  faults_.before_call = [&] {
    if (is_held.HasBeenNotified()) return;
    is_held.Notify();
    goes_on.WaitForNotification();
  };
  const auto ask = [&](SessionId session, const Numbers& numbers) {
    const std::string keys = TieredMemory::KeysOf(numbers);
    const BlockKeys asked = {.kind = kind.number, .keys = keys, .before = {}};
    std::vector<BlockPlace> places(numbers.size(), kMissingBlock);
    machine->Ask(
        {.session = session, .keys = {&asked, 1}, .looks = true, .loads = true},
        places);
    return places.front();
  };
  Numbers many(8'000);
  std::iota(many.begin(), many.end(), 100);
  EXPECT_EQ(ask(machine->session(), many), kPendingBlock);
  is_held.WaitForNotification();
  std::atomic<int> touched_before = 0;
  EXPECT_EQ(ask(other, {1}), kPendingBlock);
  goes_on.Notify();
  Await([&] {
    touched_before = faults_.touched.load();
    return ask(other, {1}) == kMissingBlock;
  });
  EXPECT_LT(touched_before, 8'000);
  machine->cache().CloseSession(other);
}

// The session ends before the answer comes; the store has the block all the
// same.
TEST_F(SharedAsksTest, AQuestionOfASessionThatHasEndedIsNoMissForOthers) {
  const auto machine = Machine();
  const BlockKind kind = machine->Open("a", kShard);
  machine->Store(kind, {1}, 7);
  machine->AwaitStores();
  const auto second = Machine();
  const BlockKind same = second->Open("a", kShard);
  const SessionId other(2);
  second->cache().OpenSession(other, "other engine");
  absl::Notification is_held;
  absl::Notification goes_on;
  faults_.before_call = [&] {
    if (is_held.HasBeenNotified()) return;
    is_held.Notify();
    goes_on.WaitForNotification();
  };
  const std::string keys = TieredMemory::KeysOf({1});
  const BlockKeys asked = {.kind = same.number, .keys = keys, .before = {}};
  std::vector<BlockPlace> places = {kMissingBlock};
  second->Ask(
      {.session = other, .keys = {&asked, 1}, .looks = true, .loads = true},
      places);
  EXPECT_THAT(places, Each(kPendingBlock));
  is_held.WaitForNotification();
  second->cache().CloseSession(other);
  goes_on.Notify();
  ExpectHolds(*second, same, {1}, second->Load(same, {1}), 7);
}

TEST_F(SharedAsksTest, TheStoreIsNotAskedForAKindThatWasReset) {
  const auto machine = Machine();
  const BlockKind before = machine->Open("a", kShard);
  machine->Reset(before);
  std::vector<BlockPlace> places = {kMissingBlock};
  const std::string keys = TieredMemory::KeysOf({1});
  const BlockKeys asked = {.kind = before.number, .keys = keys, .before = {}};
  machine->Ask({.session = machine->session(),
                .keys = {&asked, 1},
                .looks = true,
                .loads = true},
               places);
  EXPECT_THAT(places, Each(kMissingBlock));
  EXPECT_EQ(faults_.touches, 0);
}

}  // namespace
}  // namespace pando
