#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "tests/tiers/blocks/shared_machines.h"

namespace pando {
namespace {

using testing::Each;
using SharedBlockResetsTest = SharedMachines;

TEST_F(SharedBlockResetsTest, NothingOfAKindThatWasResetIsLoaded) {
  const auto one = Machine();
  BlockKind kind = one->Open("a", kShard);
  one->Store(kind, {1, 2}, 7);
  one->AwaitStores();
  kind = one->Reset(kind);
  EXPECT_THAT(one->Load(kind, {1, 2}), Each(kMissingBlock));
  Await([&] { return Files().empty(); });
  // The tier stores nothing while it erases kinds, so this takes several tries.
  uint32_t next = 100;
  Await([&] {
    one->Store(kind, {next++}, 8);
    return FiguresOf(*one).stored_blocks > 2;
  });
  const auto other = Machine();
  EXPECT_THAT(other->Load(other->Open("a", kShard), {1, 2}),
              Each(kMissingBlock));
}

TEST_F(SharedBlockResetsTest, ABlockThatIsStoredDuringAResetIsErased) {
  const auto machine = Machine();
  BlockKind kind = machine->Open("a", kShard);
  absl::Notification is_put;
  absl::Notification is_reset;
  faults_.after_put = [&] {
    if (is_put.HasBeenNotified()) return;
    is_put.Notify();
    is_reset.WaitForNotification();
  };
  machine->Store(kind, {1}, 7);
  is_put.WaitForNotification();
  kind = machine->Reset(kind);
  is_reset.Notify();
  Await([&] { return Files().empty(); });
  EXPECT_THAT(machine->Load(kind, {1}), Each(kMissingBlock));
}

// The block reaches the store after the reset has erased what was there.
TEST_F(SharedBlockResetsTest, ABlockThatIsStoredAfterAResetIsNotLoaded) {
  const auto machine = Machine();
  BlockKind kind = machine->Open("a", kShard);
  absl::Notification is_held;
  absl::Notification may_put;
  absl::Notification is_put;
  absl::Notification may_end;
  faults_.before_put = [&] {
    is_held.Notify();
    may_put.WaitForNotification();
  };
  faults_.after_put = [&] {
    is_put.Notify();
    may_end.WaitForNotification();
  };
  machine->Store(kind, {1}, 7);
  is_held.WaitForNotification();
  kind = machine->Reset(kind);
  may_put.Notify();
  is_put.WaitForNotification();
  ASSERT_FALSE(Files().empty());
  for (int round = 0; round < 20; ++round) {
    EXPECT_THAT(machine->Load(kind, {1}), Each(kMissingBlock));
  }
  may_end.Notify();
  Await([&] { return Files().empty(); });
  EXPECT_THAT(machine->Load(kind, {1}), Each(kMissingBlock));
}

}  // namespace
}  // namespace pando
