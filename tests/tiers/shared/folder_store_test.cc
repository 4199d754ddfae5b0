// Tests what only FolderStore does; remote_store_contract_test.cc tests what
// every store does.
#include "tiers/shared/folder_store.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "os/monotonic_clock.h"
#include "tests/tiers/hashes.h"

namespace pando {
namespace {

namespace fs = std::filesystem;

constexpr size_t kValueBytes = 1000;
constexpr uint64_t kNs = 7;
constexpr uint64_t kOtherNs = 8;

BlockKey KeyOf(size_t number, uint64_t ns = kNs) {
  return {.ns_digest = ns,
          .hash = HashOf(number),
          .ordinal = static_cast<uint32_t>(number)};
}

// Returns the value of the block with this number.
std::vector<std::byte> ValueOf(size_t number) {
  return std::vector<std::byte>(kValueBytes, static_cast<std::byte>(number));
}

class FolderStoreTest : public testing::Test {
 protected:
  FolderStoreTest()
      : folder_(fs::temp_directory_path() /
                absl::StrCat("folder_store_test.", getpid())) {
    fs::create_directory(folder_);
    store_ = Open(1);
  }
  ~FolderStoreTest() override { fs::remove_all(folder_); }

  std::unique_ptr<FolderStore> Open(uint64_t digest) {
    auto store = FolderStore::Open("tier-shared", folder_, digest);
    EXPECT_TRUE(store.ok()) << store.status();
    return *std::move(store);
  }
  absl::Status Put(size_t number, uint64_t ns = kNs,
                   absl::Time used = absl::Now()) {
    std::vector<std::byte> value = ValueOf(number);
    RemoteStore::Transfer block = {KeyOf(number, ns), value, {}};
    store_->Put({&block, 1}, used, absl::InfiniteFuture());
    return block.status;
  }
  // Returns how many of the blocks 0, 1, ... the store has before the first one
  // that it lacks; at most `count`.
  size_t CountPresent(size_t count, uint64_t ns = kNs) {
    std::vector<BlockKey> keys;
    for (size_t i = 0; i < count; ++i) keys.push_back(KeyOf(i, ns));
    const auto presence = store_->CountPresent(keys, absl::InfiniteFuture());
    EXPECT_EQ(presence->lacks_next, presence->blocks < count);
    return presence->blocks;
  }
  static absl::Status Get(FolderStore& store, size_t number,
                          std::vector<std::byte>& value) {
    RemoteStore::Transfer block = {KeyOf(number), value, {}};
    store.Get({&block, 1}, absl::InfiniteFuture());
    return block.status;
  }
  // Returns the files of blocks, whether complete or not.
  std::vector<fs::path> Files() {
    std::vector<fs::path> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
    return files;
  }

  const fs::path folder_;
  std::unique_ptr<FolderStore> store_;
};

TEST_F(FolderStoreTest, WhatHasNoTimeIsNotDone) {
  ASSERT_TRUE(Put(0).ok());
  const absl::Time past = MonotonicNow() - absl::Nanoseconds(1);
  const BlockKey key = KeyOf(0);
  const auto presence = store_->CountPresent({&key, 1}, past);
  EXPECT_EQ(presence->blocks, 0u);
  EXPECT_FALSE(presence->lacks_next);
  EXPECT_EQ(*store_->Touch({&key, 1}, absl::Now(), past),
            std::vector<bool>{false});
  std::vector<std::byte> value(kValueBytes);
  RemoteStore::Transfer block = {key, value, {}};
  store_->Get({&block, 1}, past);
  EXPECT_TRUE(absl::IsDeadlineExceeded(block.status));
  block.key = KeyOf(1);
  store_->Put({&block, 1}, absl::Now(), past);
  EXPECT_TRUE(absl::IsDeadlineExceeded(block.status));
  EXPECT_EQ(CountPresent(2), 1u);
}

TEST_F(FolderStoreTest, AFileOfAnotherLengthIsALoss) {
  ASSERT_TRUE(Put(0).ok());
  std::vector<std::byte> value(kValueBytes);
  for (const size_t length : {0ul, kValueBytes - 1, kValueBytes + 1}) {
    fs::resize_file(Files()[0], length);
    EXPECT_TRUE(absl::IsDataLoss(Get(*store_, 0, value))) << length;
  }
}

TEST_F(FolderStoreTest, TouchSaysWhatIsThereAndWhatIsAheadIsUsedLater) {
  const absl::Time long_ago = absl::Now() - absl::Hours(100);
  for (const size_t number : {1, 2, 4}) {
    ASSERT_TRUE(Put(number, kNs, long_ago).ok());
  }
  const std::vector<BlockKey> keys = {KeyOf(1), KeyOf(2), KeyOf(3), KeyOf(4)};
  EXPECT_EQ(*store_->Touch(keys, absl::Now(), absl::InfiniteFuture()),
            (std::vector<bool>{true, true, false, true}));
  // The files' names are in the order of the blocks' numbers.
  std::vector<fs::path> files = Files();
  std::ranges::sort(files);
  ASSERT_EQ(files.size(), 3u);
  EXPECT_GT(fs::last_write_time(files[0]), fs::last_write_time(files[1]));
  EXPECT_GT(fs::last_write_time(files[1]), fs::last_write_time(files[2]));
  EXPECT_GT(fs::last_write_time(files[2]),
            fs::file_time_type::clock::now() - std::chrono::hours(1));
}

TEST_F(FolderStoreTest, WhatWasErasedIsFreedByAnyProcess) {
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(Put(i, kNs).ok());
    ASSERT_TRUE(Put(i, kOtherNs).ok());
  }
  ASSERT_TRUE(store_->EraseAll(kNs).ok());
  EXPECT_EQ(Files().size(), 6u);
  EXPECT_EQ(CountPresent(3, kNs), 0u);
  const std::unique_ptr<FolderStore> next = Open(2);
  while (next->FreeSome()) continue;
  EXPECT_EQ(Files().size(), 3u);
  EXPECT_EQ(CountPresent(3, kOtherNs), 3u);
  ASSERT_TRUE(store_->EraseAll(std::nullopt).ok());
  while (store_->FreeSome()) continue;
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(FolderStoreTest, WhatWasErasedIsFreedInPieces) {
  constexpr size_t kFiles = 150;
  for (size_t i = 0; i < kFiles; ++i) ASSERT_TRUE(Put(i, kNs).ok());
  ASSERT_TRUE(store_->EraseAll(kNs).ok());
  std::vector<size_t> pieces;
  uint64_t freed = 0;
  size_t files = 0;
  while (store_->FreeFiles([&](uint64_t bytes) {
    freed += bytes;
    ++files;
  }) == FolderStore::Erased::kMore) {
    pieces.push_back(std::exchange(files, 0));
  }
  EXPECT_EQ(pieces, (std::vector<size_t>{64, 64, 22}));
  EXPECT_EQ(freed, kFiles * kValueBytes);
  EXPECT_THAT(Files(), testing::IsEmpty());
}

TEST_F(FolderStoreTest, OnlyWhatEraseAllHasNamedIsFreed) {
  for (const char* const name :
       {"erased-", "erased-backup", "erased-0123456789abcdefg", "erased"}) {
    fs::create_directories(folder_ / name);
  }
  const fs::path elsewhere(folder_.string() + "-elsewhere");
  fs::create_directories(elsewhere / "kept");
  fs::create_directory_symlink(elsewhere, folder_ / "erased-0123456789abcdef");
  fs::create_directories(folder_ / "erased-1123456789abcdef/0/1");
  fs::create_directory_symlink(elsewhere,
                               folder_ / "erased-1123456789abcdef/0/link");
  EXPECT_TRUE(store_->FreeSome());
  EXPECT_FALSE(store_->FreeSome());
  EXPECT_TRUE(fs::exists(elsewhere / "kept"));
  EXPECT_TRUE(fs::exists(folder_ / "erased-backup"));
  EXPECT_FALSE(fs::exists(folder_ / "erased-1123456789abcdef"));
  fs::remove_all(elsewhere);
}

TEST_F(FolderStoreTest, StockIsTakenOfWhatIsWholeAndTheRestIsRemoved) {
  ASSERT_TRUE(Put(1).ok());
  ASSERT_TRUE(Put(2, kOtherNs).ok());
  ASSERT_TRUE(Put(3).ok());
  for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
    if (!entry.is_regular_file()) continue;
    // A copy stands for the file that a killed writer leaves.
    fs::copy_file(entry.path(), entry.path().parent_path() / ".killed-1");
    break;
  }
  ASSERT_TRUE(store_->Erase(KeyOf(3)).ok());
  std::vector<std::pair<uint64_t, PageHash>> found;
  store_->TakeStock([&](const FolderStore::Found& block) {
    EXPECT_EQ(block.bytes, kValueBytes);
    found.emplace_back(block.key.ns_digest, block.key.hash);
    return true;
  });
  EXPECT_THAT(found,
              testing::UnorderedElementsAre(std::pair(kNs, HashOf(1)),
                                            std::pair(kOtherNs, HashOf(2))));
  for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
    EXPECT_FALSE(entry.path().filename().native().starts_with('.'));
  }
  // The visits end when a visitor returns false.
  size_t visits = 0;
  store_->TakeStock([&](const FolderStore::Found&) { return ++visits > 1; });
  EXPECT_EQ(visits, 1u);
}

TEST_F(FolderStoreTest, WhatCannotBeWrittenLeavesNothing) {
  ASSERT_TRUE(Put(0).ok());
  // A folder takes the name of the file.
  const fs::path file = Files()[0];
  fs::remove(file);
  fs::create_directories(file / "in the way");
  EXPECT_FALSE(Put(0).ok());
  EXPECT_TRUE(Files().empty());
}

}  // namespace
}  // namespace pando
