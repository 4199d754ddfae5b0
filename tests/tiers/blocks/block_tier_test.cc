#include "tiers/blocks/block_tier.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>
#include <random>
#include <system_error>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tiers/blocks/tiered_memory.h"

namespace pando {
namespace {

namespace fs = std::filesystem;
using Numbers = std::vector<uint32_t>;

constexpr uint64_t kSmallShard = 3'000;  // a block takes two places
constexpr uint64_t kLargeShard = 8'192;
constexpr uint64_t kMemory = 4 * TieredMemory::kExtentBytes;
constexpr uint64_t kRoomy = uint64_t{16} << 20;

class BlockTierTest : public testing::Test {
 protected:
  BlockTierTest()
      : folder_(fs::temp_directory_path() /
                absl::StrCat("block_tier_test.", getpid())) {
    Start();
  }
  ~BlockTierTest() override {
    memory_.reset();
    fs::remove_all(folder_);
  }
  void TearDown() override {
    EXPECT_THAT(memory_->cache().CheckInvariants(), testing::IsEmpty());
  }

  // Starts pandod again with an empty memory, as after a kill.
  void Start(uint64_t tier_bytes = kRoomy, bool stores_at_once = true) {
    memory_.reset();
    memory_ = std::make_unique<TieredMemory>(folder_, kMemory, tier_bytes,
                                             stores_at_once);
  }
  // Waits until the tier has the block. A new tier needs time to find the files
  // that an earlier one has left.
  void AwaitHas(const BlockKind& kind, uint32_t number) {
    const absl::Time limit = absl::Now() + absl::Seconds(60);
    while (!Has(kind, number) && absl::Now() < limit) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    EXPECT_TRUE(Has(kind, number)) << number;
  }
  bool Has(const BlockKind& kind, uint32_t number) {
    return memory_->tier().Has(kind.number, TieredMemory::KeyOf(number));
  }
  void ExpectLoads(const BlockKind& kind, const Numbers& numbers,
                   uint64_t seed) {
    const auto places = memory_->Load(kind, numbers);
    for (size_t i = 0; i < numbers.size(); ++i) {
      ASSERT_TRUE(IsPlace(places[i])) << numbers[i];
      EXPECT_TRUE(memory_->Holds(kind, places[i], numbers[i], seed));
    }
  }
  std::vector<fs::path> Files() const { return FilesIn(folder_); }

  const std::string folder_;
  std::unique_ptr<TieredMemory> memory_;
};

TEST_F(BlockTierTest, WhatIsPublishedIsFoundAfterARestart) {
  const Numbers numbers = {1, 2, 3};
  memory_->Store(memory_->Open("a", kSmallShard), numbers, 7);
  memory_->AwaitStores();
  Start();
  const BlockKind kind = memory_->Open("a", kSmallShard);
  AwaitHas(kind, 3);
  ExpectLoads(kind, numbers, 7);
  EXPECT_EQ(memory_->tier().figures().disk.loaded_blocks, 3u);
  // A kind with another identity has none of these blocks.
  const auto other = memory_->Open("b", kSmallShard);
  EXPECT_THAT(memory_->Load(other, numbers), testing::Each(kMissingBlock));
}

TEST_F(BlockTierTest, AnEvictedBlockIsLoadedAgainForACallThatAsks) {
  const BlockKind kind = memory_->Open("a", kLargeShard);
  Numbers numbers;
  for (uint32_t i = 0; i < 16; ++i) numbers.push_back(i);
  memory_->Store(kind, numbers, 1);
  memory_->AwaitStores();
  for (uint32_t i = 100; i < 116; ++i) {
    memory_->Store(kind, {i}, 1);
    memory_->AwaitStores();
  }
  const std::string keys = TieredMemory::KeysOf(numbers);
  const BlockKeys asked = {.kind = kind.number, .keys = keys, .before = {}};
  auto places = *memory_->blocks().Lookup(memory_->session(), {&asked, 1});
  ASSERT_THAT(places, testing::Each(kMissingBlock));
  // A call that does not load is told that the tier has the blocks; nothing is
  // loaded for it.
  AskedOfTier look = {
      .session = memory_->session(), .keys = {&asked, 1}, .looks = true};
  uint32_t found = 0;
  memory_->Ask(look, places, &found);
  EXPECT_EQ(found, 16u);
  EXPECT_THAT(places, testing::Each(kMissingBlock));
  EXPECT_EQ(memory_->tier().figures().disk.loaded_blocks, 0u);
  // At most a quarter of the memory is loaded at a time.
  look.loads = true;
  memory_->Ask(look, places);
  EXPECT_EQ(std::ranges::count(places, kPendingBlock), 4);
  ExpectLoads(kind, {0, 1, 2, 3}, 1);
}

TEST_F(BlockTierTest, NothingOfAKindThatWasResetIsFoundAlsoAfterARestart) {
  BlockKind kind = memory_->Open("a", kSmallShard);
  memory_->Store(kind, {1, 2}, 7);
  memory_->AwaitStores();
  kind = memory_->Reset(kind);
  EXPECT_FALSE(Has(kind, 1));
  EXPECT_THAT(memory_->Load(kind, {1, 2}), testing::Each(kMissingBlock));
  memory_->Store(kind, {2}, 8);
  memory_->AwaitStores();
  Start();
  kind = memory_->Open("a", kSmallShard);
  AwaitHas(kind, 2);
  EXPECT_FALSE(Has(kind, 1));
  ExpectLoads(kind, {2}, 8);
}

TEST_F(BlockTierTest, ADamagedFileIsAMissAndForgotten) {
  BlockKind kind = memory_->Open("a", kSmallShard);
  memory_->Store(kind, {1, 2}, 7);
  memory_->AwaitStores();
  Start();
  const auto files = Files();
  ASSERT_EQ(files.size(), 2u);
  fs::resize_file(files[0], 5'000);
  std::fstream(files[1], std::ios::in | std::ios::out | std::ios::binary)
      .seekp(6'000)
      .put('!');
  kind = memory_->Open("a", kSmallShard);
  AwaitHas(kind, 1);
  AwaitHas(kind, 2);
  EXPECT_THAT(memory_->Load(kind, {1, 2}), testing::Each(kMissingBlock));
  EXPECT_EQ(memory_->tier().figures().disk.damaged_blocks, 2u);
  EXPECT_FALSE(Has(kind, 1));
  EXPECT_THAT(Files(), testing::IsEmpty());
}

// Replaces a file with one that cannot be opened.
void Spoil(const fs::path& file) {
  fs::remove(file);
  fs::create_symlink(file, file);
}

TEST_F(BlockTierTest, AFileThatCannotBeReadKeepsNoOtherFromBeingLoaded) {
  BlockKind kind = memory_->Open("a", kSmallShard);
  memory_->Store(kind, {1}, 7);
  memory_->AwaitStores();
  const fs::path file = Files().front();
  memory_->Store(kind, {2}, 7);
  memory_->AwaitStores();
  Start();
  kind = memory_->Open("a", kSmallShard);
  AwaitHas(kind, 1);
  AwaitHas(kind, 2);
  Spoil(file);
  EXPECT_THAT(memory_->Load(kind, {1}), testing::Each(kMissingBlock));
  ExpectLoads(kind, {2}, 7);
  // Block 1 can be asked for again: it is neither read again nor forgotten.
  EXPECT_THAT(memory_->Load(kind, {1}), testing::Each(kMissingBlock));
  EXPECT_EQ(memory_->tier().figures().disk.failed_reads, 1u);
  EXPECT_TRUE(Has(kind, 1));
}

TEST_F(BlockTierTest, ADiskThatFailsIsNotAskedForEveryBlock) {
  BlockKind kind = memory_->Open("a", kSmallShard);
  Numbers numbers;
  for (uint32_t i = 0; i < 60; i += 4) {
    memory_->Store(kind, {i, i + 1, i + 2, i + 3}, 7);
    memory_->AwaitStores();
    for (uint32_t j = 0; j < 4; ++j) numbers.push_back(i + j);
  }
  Start();
  kind = memory_->Open("a", kSmallShard);
  for (uint32_t number : numbers) AwaitHas(kind, number);
  for (const fs::path& file : Files()) Spoil(file);
  EXPECT_THAT(memory_->Load(kind, numbers), testing::Each(kMissingBlock));
  EXPECT_EQ(memory_->tier().figures().disk.failed_reads, 16u);
}

// No step has more keys than KeptBlocks takes at once.
TEST_F(BlockTierTest, ACallOfManyKeysIsAnsweredInSteps) {
  const BlockKind kind = memory_->Open("a", kSmallShard);
  Numbers numbers(kMaxBlockKeys);
  std::iota(numbers.begin(), numbers.end(), 0);
  constexpr size_t kPieces = kMaxBlockKeys / KeptBlocks::kMostNames;
  const std::string keys = TieredMemory::KeysOf(numbers);
  const BlockKeys asked = {.kind = kind.number, .keys = keys, .before = {}};
  AskedOfTier look = {
      .session = memory_->session(), .keys = {&asked, 1}, .looks = true};
  std::vector<BlockPlace> places(numbers.size(), kMissingBlock);
  EXPECT_EQ(memory_->Ask(look, places), kPieces + 1);
  look = {.session = memory_->session(), .keys = {&asked, 1}, .uses = true};
  std::ranges::fill(places, BlockPlace(1));
  EXPECT_EQ(memory_->Ask(look, places), kPieces + 1);
}

TEST_F(BlockTierTest, LoadsBeginInSteps) {
  const BlockKind kind = memory_->Open("a", kSmallShard);
  Numbers numbers;
  for (uint32_t i = 0; i < 2 * KeptBlocks::kMostNames; i += 8) {
    Numbers some(8);
    std::iota(some.begin(), some.end(), i);
    memory_->Store(kind, some, 7);
    memory_->AwaitStores();
    numbers.insert(numbers.end(), some.begin(), some.end());
  }
  const std::string keys = TieredMemory::KeysOf(numbers);
  const BlockKeys asked = {.kind = kind.number, .keys = keys, .before = {}};
  std::vector<BlockPlace> places(numbers.size(), kMissingBlock);
  const AskedOfTier look = {.session = memory_->session(),
                            .keys = {&asked, 1},
                            .looks = true,
                            .loads = true};
  EXPECT_EQ(memory_->Ask(look, places), 2u + 2u + 1u);
}

// A reset may leave files to be deleted later, but no pandod finds them.
TEST_F(BlockTierTest, AResetIsAnsweredWhenItHoldsAlsoAfterAKill) {
  BlockKind kind = memory_->Open("a", kSmallShard);
  memory_->Store(kind, {1}, 7);
  memory_->AwaitStores();
  const fs::path file = Files().front();
  TieredMemory::WaitingReset call;
  if (!memory_->BeginReset(kind, call)) memory_->Await(call);
  EXPECT_FALSE(fs::exists(file));
}

TEST_F(BlockTierTest, FilesOfAResetKindMakeRoomBeforeBlocksDo) {
  const uint64_t block = BlockFiles::BytesOnDisk(2 * 4'096 + 96);
  Start(8 * block);
  const BlockKind kept = memory_->Open("kept", kSmallShard);
  BlockKind kind = memory_->Open("a", kSmallShard);
  memory_->Store(kept, {1, 2, 3, 4}, 7);
  memory_->AwaitStores();
  // Each generation of the kind takes one extent of the memory.
  for (uint64_t seed = 1; seed < 3; ++seed) {
    memory_->Store(kind, {1, 2, 3, 4}, seed);
    AwaitHas(kind, 4);
    kind = memory_->Reset(kind);
    EXPECT_LE(memory_->tier().figures().disk.held_bytes, 8 * block);
  }
  memory_->Store(kind, {1, 2, 3, 4}, 3);
  AwaitHas(kind, 4);
  for (uint32_t number = 1; number <= 4; ++number) {
    EXPECT_TRUE(Has(kept, number)) << number;
  }
  EXPECT_EQ(memory_->tier().figures().disk.held_bytes, 8 * block);
}

TEST_F(BlockTierTest, AFileUnderTheNameOfAnotherBlockIsAMiss) {
  BlockKind kind = memory_->Open("a", kSmallShard);
  memory_->Store(kind, {1, 2}, 7);
  memory_->AwaitStores();
  const auto files = Files();
  fs::copy_file(files[0], files[1], fs::copy_options::overwrite_existing);
  Start();
  kind = memory_->Open("a", kSmallShard);
  AwaitHas(kind, 1);
  AwaitHas(kind, 2);
  EXPECT_EQ(std::ranges::count(memory_->Load(kind, {1, 2}), kMissingBlock), 1);
  EXPECT_EQ(memory_->tier().figures().disk.damaged_blocks, 1u);
}

TEST_F(BlockTierTest, WhatCannotBeWrittenIsCountedAndStaysInTheMemory) {
  const BlockKind kind = memory_->Open("a", kSmallShard);
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  {
    // As on a full disk, only the beginning of a file can be written.
    const auto handler = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit small = {.rlim_cur = 4'096, .rlim_max = before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    const absl::Cleanup restore = [&] {
      setrlimit(RLIMIT_FSIZE, &before);
      std::signal(SIGXFSZ, handler);
    };
    memory_->Store(kind, {1, 2}, 7);
    memory_->AwaitStores();
  }
  EXPECT_EQ(memory_->tier().figures().disk.failed_writes, 2u);
  EXPECT_EQ(memory_->tier().figures().disk.held_bytes, 0u);
  EXPECT_THAT(Files(), testing::IsEmpty());
  ExpectLoads(kind, {1, 2}, 7);
}

TEST_F(BlockTierTest, AFullTierKeepsWhatWasUsedLastAndEndsOfPromptsGoFirst) {
  const uint64_t block = BlockFiles::BytesOnDisk(2 * 4'096 + 96);
  Start(4 * block);
  const BlockKind kind = memory_->Open("a", kSmallShard);
  memory_->Store(kind, {1, 2, 3}, 7);
  memory_->AwaitStores();
  for (const fs::path& file : Files()) {
    fs::last_write_time(file,
                        fs::last_write_time(file) - std::chrono::hours(1));
  }
  memory_->Store(kind, {11, 12}, 7);
  memory_->AwaitStores();
  EXPECT_TRUE(Has(kind, 1) && Has(kind, 2) && Has(kind, 11) && Has(kind, 12));
  EXPECT_FALSE(Has(kind, 3));
  EXPECT_EQ(Files().size(), 4u);
  // A smaller tier keeps the blocks that were used last.
  Start(2 * block);
  const BlockKind same = memory_->Open("a", kSmallShard);
  AwaitHas(same, 11);
  AwaitHas(same, 12);
  EXPECT_FALSE(Has(same, 1));
  EXPECT_EQ(Files().size(), 2u);
}

TEST_F(BlockTierTest, WithFirstHitWhatIsAcquiredIsStored) {
  Start(kRoomy, /*stores_at_once=*/false);
  const BlockKind kind = memory_->Open("a", kSmallShard);
  memory_->Store(kind, {1, 2}, 7);
  const std::string keys = TieredMemory::KeysOf({2, 3});
  const BlockKeys asked = {.kind = kind.number, .keys = keys, .before = {}};
  auto places = *memory_->blocks().Acquire({.session = memory_->session(),
                                            .lock = BlockLockId(1),
                                            .keys = {&asked, 1}});
  memory_->Ask(
      {.session = memory_->session(), .keys = {&asked, 1}, .uses = true},
      places);
  AwaitHas(kind, 2);
  EXPECT_FALSE(Has(kind, 1));
  EXPECT_EQ(memory_->tier().figures().disk.stored_blocks, 1u);
}

TEST_F(BlockTierTest, ASecondPandodMayNotUseTheFolder) {
  EXPECT_FALSE(BlockFiles::Open({.folder = folder_, .max_bytes = 1}).ok());
}

// Stores, loads, evicts, resets and damages rows of blocks of two kinds, with
// restarts in between. A block that is found always has the bytes of its key
// and of the last reset.
TEST_F(BlockTierTest, NeverGivesAWrongByteInRandomProgramsWithFaults) {
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  const auto below = [&](uint32_t n) { return random() % n; };
  constexpr const char* kIdentities[] = {"a", "b"};
  constexpr uint64_t kShards[] = {kSmallShard, kLargeShard};
  uint64_t resets[] = {1, 1};
  BlockKind kinds[2];
  const auto restart = [&] {
    Start(uint64_t{400} << 10);
    for (int i = 0; i < 2; ++i) {
      kinds[i] = memory_->Open(kIdentities[i], kShards[i]);
    }
  };
  restart();
  uint64_t found = 0;
  uint64_t loaded = 0;
  for (int step = 0; step < 400; ++step) {
    const uint32_t which = below(2);
    Numbers row(1 + below(6));
    std::iota(row.begin(), row.end(), below(40));
    const uint32_t action = below(100);
    if (action < 45) {
      memory_->Store(kinds[which], row, resets[which]);
    } else if (action < 90) {
      const auto places = memory_->Load(kinds[which], row);
      for (size_t i = 0; i < row.size(); ++i) {
        if (!IsPlace(places[i])) continue;
        ++found;
        ASSERT_TRUE(
            memory_->Holds(kinds[which], places[i], row[i], resets[which]))
            << "block " << row[i] << " of " << kIdentities[which];
      }
    } else if (action < 93) {
      kinds[which] = memory_->Reset(kinds[which]);
      ++resets[which];
    } else if (action < 96) {
      loaded += memory_->tier().figures().disk.loaded_blocks;
      restart();
    } else {
      for (const auto& file : Files()) {
        if (below(8) == 0) Damage(file, random);
      }
    }
    ASSERT_LE(memory_->tier().figures().disk.held_bytes, uint64_t{400} << 10);
  }
  EXPECT_GT(found, 0u);
  EXPECT_GT(loaded + memory_->tier().figures().disk.loaded_blocks, 0u);
}

}  // namespace
}  // namespace pando
