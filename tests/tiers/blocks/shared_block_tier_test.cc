#include "tiers/blocks/shared_block_tier.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tiers/blocks/tiered_memory.h"
#include "tiers/shared/folder_store.h"

namespace pando {
namespace {

namespace fs = std::filesystem;
using Numbers = std::vector<uint32_t>;
using testing::Each;

constexpr uint64_t kShard = 3'000;
constexpr uint64_t kMemory = 8 * TieredMemory::kExtentBytes;
// The store answers, however slow the machine is.
constexpr SharedBlockTier::Timeouts kPatient = {
    .ask = absl::Hours(1), .get = absl::Hours(1), .put = absl::Hours(1)};

// What a test makes of the calls of a store.
struct Faults {
  std::atomic<bool> fails = false;
  std::atomic<int> touches = 0;
  std::atomic<int> touched = 0;        // keys
  std::optional<PageHash> unreadable;  // a block that Get fails for
  std::function<void()> before_call = [] {};
  std::function<void()> before_put = [] {};
  std::function<void()> after_put = [] {};
};

// A folder that fails as it is told.
class FaultyStore final : public RemoteStore {
 public:
  FaultyStore(std::unique_ptr<RemoteStore> store, Faults* faults)
      : store_(std::move(store)), faults_(faults) {}

  absl::StatusOr<Presence> CountPresent(std::span<const BlockKey> keys,
                                        absl::Time deadline) override {
    return store_->CountPresent(keys, deadline);
  }
  void Get(std::span<Transfer> blocks, absl::Time deadline) override {
    faults_->before_call();
    if (!faults_->fails) store_->Get(blocks, deadline);
    for (Transfer& block : blocks) {
      if (faults_->fails || block.key.hash == faults_->unreadable) {
        block.status = Failure();
      }
    }
  }
  void Put(std::span<Transfer> blocks, absl::Time used,
           absl::Time deadline) override {
    faults_->before_call();
    if (blocks.empty()) return;
    if (faults_->fails) {
      for (Transfer& block : blocks) block.status = Failure();
      return;
    }
    faults_->before_put();
    store_->Put(blocks, used, deadline);
    faults_->after_put();
  }
  absl::StatusOr<std::vector<bool>> Touch(std::span<const BlockKey> keys,
                                          absl::Time used,
                                          absl::Time deadline) override {
    faults_->before_call();
    ++faults_->touches;
    faults_->touched += static_cast<int>(keys.size());
    if (faults_->fails) return Failure();
    return store_->Touch(keys, used, deadline);
  }
  absl::Status Erase(const BlockKey& key) override {
    return store_->Erase(key);
  }
  absl::Status EraseAll(std::optional<uint64_t> kind) override {
    return store_->EraseAll(kind);
  }
  bool FreeSome() override { return store_->FreeSome(); }

 private:
  static absl::Status Failure() { return absl::UnavailableError("it is gone"); }

  const std::unique_ptr<RemoteStore> store_;
  Faults* const faults_;
};

class SharedBlockTierTest : public testing::Test {
 protected:
  SharedBlockTierTest()
      : folder_(fs::temp_directory_path() /
                absl::StrCat("shared_block_tier_test.", getpid())) {
    fs::create_directory(folder_);
    fs::permissions(folder_, fs::perms::owner_all);
  }
  ~SharedBlockTierTest() override { fs::remove_all(folder_); }

  // A machine that shares the folder. Calls of the store meet `faults`.
  std::unique_ptr<TieredMemory> Machine(
      Faults* faults, std::string_view secret = "",
      const SharedBlockTier::Timeouts& timeouts = kPatient) {
    auto folder = FolderStore::Open("block-tier-shared", folder_,
                                    BlockTier::kFormOfBlocks);
    EXPECT_TRUE(folder.ok()) << folder.status();
    SharedStore shared = {
        .store = std::make_unique<FaultyStore>(*std::move(folder), faults),
        .key = secret.empty() ? nullptr
                              : std::make_unique<SharedKey>(
                                    std::as_bytes(std::span(secret))),
        .digest = BlockTier::kFormOfBlocks};
    return std::make_unique<TieredMemory>(
        kMemory,
        BlockTier::Config{
            .disk = {}, .shared = std::move(shared), .timeouts = timeouts});
  }
  static void ExpectHolds(TieredMemory& machine, const BlockKind& kind,
                          const Numbers& numbers,
                          const std::vector<BlockPlace>& places,
                          uint64_t seed) {
    for (size_t i = 0; i < numbers.size(); ++i) {
      ASSERT_TRUE(IsPlace(places[i])) << numbers[i];
      EXPECT_TRUE(machine.Holds(kind, places[i], numbers[i], seed));
    }
  }
  static BlockTierFigures FiguresOf(TieredMemory& machine) {
    return *machine.tier().figures().shared;
  }
  static void Await(const std::function<bool()>& is_so) {
    const absl::Time limit = absl::Now() + absl::Seconds(60);
    bool was_so = false;
    while (!(was_so = is_so()) && absl::Now() < limit) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    EXPECT_TRUE(was_so);
  }
  // Lists them anew when some go meanwhile.
  std::vector<fs::path> Files() const {
    while (true) {
      std::vector<fs::path> files;
      std::error_code gone;
      fs::recursive_directory_iterator it(folder_, gone);
      for (; !gone && it != fs::recursive_directory_iterator();
           it.increment(gone)) {
        if (it->is_regular_file(gone)) files.push_back(it->path());
        if (gone) break;
      }
      if (gone) continue;
      std::ranges::sort(files);
      return files;
    }
  }

  const std::string folder_;
  Faults faults_;
};

TEST_F(SharedBlockTierTest, AnotherMachineLoadsWhatOneHasPublished) {
  const Numbers numbers = {1, 2, 3};
  const auto one = Machine(&faults_);
  one->Store(one->Open("a", kShard), numbers, 7);
  one->AwaitStores();
  EXPECT_EQ(FiguresOf(*one).stored_blocks, 3u);
  const auto other = Machine(&faults_);
  const BlockKind kind = other->Open("a", kShard);
  ExpectHolds(*other, kind, numbers, other->Load(kind, numbers), 7);
  EXPECT_EQ(FiguresOf(*other).loaded_blocks, 3u);
  // Other identities have nothing of it.
  EXPECT_THAT(other->Load(other->Open("b", kShard), numbers),
              Each(kMissingBlock));
  EXPECT_THAT(other->cache().CheckInvariants(), testing::IsEmpty());
}

TEST_F(SharedBlockTierTest, WhatTheStoreHasIsNotStoredAgain) {
  const auto one = Machine(&faults_);
  const auto other = Machine(&faults_);
  one->Store(one->Open("a", kShard), {1, 2}, 7);
  one->AwaitStores();
  const int before = faults_.touches;
  other->Store(other->Open("a", kShard), {1, 2, 3}, 7);
  Await([&] { return FiguresOf(*other).stored_blocks == 1; });
  EXPECT_EQ(faults_.touches, before + 1);
}

TEST_F(SharedBlockTierTest, TheStoreIsAskedOnceForWhatItLacks) {
  const auto machine = Machine(&faults_);
  const BlockKind kind = machine->Open("a", kShard);
  EXPECT_THAT(machine->Load(kind, {1, 2}), Each(kMissingBlock));
  EXPECT_EQ(faults_.touches, 1);
  EXPECT_THAT(machine->Load(kind, {1, 2}), Each(kMissingBlock));
  EXPECT_EQ(faults_.touches, 1);
}

TEST_F(SharedBlockTierTest, ACallThatDoesNotLoadDoesNotAsk) {
  const auto machine = Machine(&faults_);
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

// One question finds the last row that the store has, however far it is from
// the end.
TEST_F(SharedBlockTierTest, OnlyTheRowThatAShapeNeedsIsLoaded) {
  const auto one = Machine(&faults_);
  one->Store(one->Open("a", kShard), {0, 1, 2, 3, 4, 5}, 7);
  one->AwaitStores();
  const auto other = Machine(&faults_);
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

TEST_F(SharedBlockTierTest, DamagedBlocksAreMissesAndErased) {
  const auto one = Machine(&faults_);
  one->Store(one->Open("a", kShard), {1, 2, 3}, 7);
  one->AwaitStores();
  const std::vector<fs::path> files = Files();
  ASSERT_EQ(files.size(), 3u);
  fs::resize_file(files[0], 100);
  std::fstream(files[1], std::ios::in | std::ios::out | std::ios::binary)
      .seekp(2'000)
      .put('x');
  const auto other = Machine(&faults_);
  const auto places = other->Load(other->Open("a", kShard), {1, 2, 3});
  EXPECT_EQ(std::ranges::count_if(places, IsPlace), 1);
  EXPECT_EQ(FiguresOf(*other).damaged_blocks, 2u);
  EXPECT_EQ(Files().size(), 1u);
}

TEST_F(SharedBlockTierTest, BlocksThatAnotherSecretSignedAreNotLoaded) {
  const std::string ours(32, 'a');
  const std::string theirs(32, 'b');
  const auto one = Machine(&faults_, ours);
  one->Store(one->Open("a", kShard), {1}, 7);
  one->AwaitStores();
  const auto same = Machine(&faults_, ours);
  const BlockKind kind = same->Open("a", kShard);
  ExpectHolds(*same, kind, {1}, same->Load(kind, {1}), 7);
  const auto other = Machine(&faults_, theirs);
  EXPECT_THAT(other->Load(other->Open("a", kShard), {1}), Each(kMissingBlock));
  EXPECT_EQ(FiguresOf(*other).damaged_blocks, 1u);
}

TEST_F(SharedBlockTierTest, AStoreThatFailsMakesMissesAndIsRefused) {
  faults_.fails = true;
  const auto machine = Machine(&faults_);
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

// Calls neither wait for it, nor is memory held for what it does not give.
TEST_F(SharedBlockTierTest, AStoreThatHangsHoldsUpNothing) {
  absl::Notification goes_on;
  faults_.before_call = [&] { goes_on.WaitForNotification(); };
  const auto machine = Machine(&faults_, "",
                               {.ask = absl::Milliseconds(20),
                                .get = absl::Milliseconds(20),
                                .put = absl::Milliseconds(20)});
  const BlockKind kind = machine->Open("a", kShard);
  machine->Store(kind, {1}, 7);
  EXPECT_THAT(machine->Load(kind, {5, 6}), Each(kMissingBlock));
  EXPECT_EQ(machine->blocks().Stats().reservations, 0u);
  EXPECT_GT(FiguresOf(*machine).failed_reads, 0u);
  goes_on.Notify();
}

TEST_F(SharedBlockTierTest, NothingOfAKindThatWasResetIsLoaded) {
  const auto one = Machine(&faults_);
  BlockKind kind = one->Open("a", kShard);
  one->Store(kind, {1, 2}, 7);
  one->AwaitStores();
  kind = one->Reset(kind);
  EXPECT_THAT(one->Load(kind, {1, 2}), Each(kMissingBlock));
  Await([&] { return Files().empty(); });
  // While kinds are erased, nothing is stored.
  uint32_t next = 100;
  Await([&] {
    one->Store(kind, {next++}, 8);
    return FiguresOf(*one).stored_blocks > 2;
  });
  const auto other = Machine(&faults_);
  EXPECT_THAT(other->Load(other->Open("a", kShard), {1, 2}),
              Each(kMissingBlock));
}

TEST_F(SharedBlockTierTest, ABlockThatIsStoredDuringAResetIsErased) {
  const auto machine = Machine(&faults_);
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

// Others come, so the store is not refused.
TEST_F(SharedBlockTierTest,
       ABlockThatCannotBeReadIsMissingAndNotPendingForEver) {
  const auto one = Machine(&faults_);
  one->Store(one->Open("a", kShard), {1, 2, 3}, 7);
  one->AwaitStores();
  const auto other = Machine(&faults_);
  const BlockKind kind = other->Open("a", kShard);
  faults_.unreadable = TierKeyOf(TieredMemory::KeyOf(2));
  const auto places = other->Load(kind, {1, 2, 3});
  ExpectHolds(*other, kind, {1, 3}, {places[0], places[2]}, 7);
  EXPECT_EQ(places[1], kMissingBlock);
}

TEST_F(SharedBlockTierTest, TheStoreIsNotAskedForAKindThatWasReset) {
  const auto machine = Machine(&faults_);
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

// The first call of the store is held until both have asked.
TEST_F(SharedBlockTierTest, ALongQuestionOfOneSessionHoldsUpNoOther) {
  absl::Notification is_held;
  absl::Notification goes_on;
  const auto machine = Machine(&faults_);
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

// Its own account is gone; the store has the block all the same.
TEST_F(SharedBlockTierTest, AQuestionOfASessionThatHasEndedIsNoMissForOthers) {
  const auto machine = Machine(&faults_);
  const BlockKind kind = machine->Open("a", kShard);
  machine->Store(kind, {1}, 7);
  machine->AwaitStores();
  const auto second = Machine(&faults_);
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

// The block reaches the store when what was there is erased already.
TEST_F(SharedBlockTierTest, ABlockThatIsStoredAfterAResetIsNotLoaded) {
  const auto machine = Machine(&faults_);
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

TEST_F(SharedBlockTierTest, WhatTheStoreHasLostIsStoredAgain) {
  const auto machine = Machine(&faults_);
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

// The store has the beginning of a long prompt. A new prompt costs one short
// question.
TEST_F(SharedBlockTierTest, APrefixIsAskedForUntilItsEndIsFound) {
  Numbers numbers(1'000);
  std::iota(numbers.begin(), numbers.end(), 0);
  const auto machine = Machine(&faults_);
  const BlockKind kind = machine->Open("a", kShard);
  EXPECT_EQ(machine->Load(kind, numbers, BlockShape::kPrefix).front(),
            kMissingBlock);
  EXPECT_EQ(faults_.touches, 1);
  EXPECT_EQ(faults_.touched, 64);
}

// The disk has blocks 1 to 3, and none has block 0.
TEST_F(SharedBlockTierTest, NothingBehindAHoleOfAPrefixIsLoadedFromDisk) {
  const std::string disk = absl::StrCat(folder_, "/disk");
  auto folder =
      FolderStore::Open("block-tier-shared", folder_, BlockTier::kFormOfBlocks);
  ASSERT_TRUE(folder.ok());
  const BlockFiles::Config on_disk = {disk, uint64_t{16} << 20};
  {
    TieredMemory before(
        kMemory,
        {.disk = on_disk, .shared = std::nullopt, .timeouts = kPatient});
    before.Store(before.Open("a", kShard), {1, 2, 3}, 7);
    before.AwaitStores();
  }
  SharedStore shared = {.store = *std::move(folder),
                        .key = nullptr,
                        .digest = BlockTier::kFormOfBlocks};
  TieredMemory machine(
      kMemory,
      {.disk = on_disk, .shared = std::move(shared), .timeouts = kPatient});
  const BlockKind kind = machine.Open("a", kShard);
  Await([&] { return machine.tier().figures().disk.held_blocks == 3; });
  EXPECT_THAT(machine.Load(kind, {0, 1, 2, 3}, BlockShape::kPrefix).front(),
              kMissingBlock);
  EXPECT_EQ(machine.tier().figures().disk.loaded_blocks, 0u);
  const auto places = machine.Load(kind, {1, 2, 3}, BlockShape::kPrefix);
  ExpectHolds(machine, kind, {1, 2, 3}, places, 7);
}

// Rows of blocks that two machines publish, look for and reset together, with
// damaged files and failures meanwhile. What is found always has the bytes of
// its key and of the last reset.
TEST_F(SharedBlockTierTest, NeverGivesAWrongByteInRandomProgramsWithFaults) {
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const auto below = [&](uint32_t n) { return random() % n; };
  std::unique_ptr<TieredMemory> machines[2];
  BlockKind kinds[2];
  const auto start = [&](int which) {
    machines[which] = nullptr;
    machines[which] = Machine(&faults_);
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
      // Both stop, so that nothing of before is stored after the reset.
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
      for (const fs::path& file : Files()) {
        if (below(8) > 0) continue;
        std::error_code gone;
        if (below(2) == 0) {
          fs::resize_file(file, below(8'192), gone);
        } else {
          std::fstream(file, std::ios::in | std::ios::out | std::ios::binary)
              .seekp(below(6'000))
              .put(static_cast<char>(below(256)));
        }
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
