#include "tiers/local/disk_store.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/tiers/hashes.h"

namespace pando {
namespace {

using testing::HasSubstr;

constexpr uint64_t kBlockBytes = 5000;  // takes two disk units of 4,096 bytes
constexpr uint64_t kMaxBytes = 100'000;

struct FreeBuffer {
  void operator()(std::byte* buffer) const { std::free(buffer); }
};
using Buffer = std::unique_ptr<std::byte, FreeBuffer>;

Buffer BufferOf(const DiskStore& store, int content) {
  Buffer buffer(static_cast<std::byte*>(
      std::aligned_alloc(DiskStore::kAlignment, store.buffer_bytes())));
  std::memset(buffer.get(), content, store.buffer_bytes());
  return buffer;
}

class DiskStoreTest : public testing::Test {
 protected:
  DiskStoreTest() { std::filesystem::remove_all(config_.folder); }
  ~DiskStoreTest() override { std::filesystem::remove_all(config_.folder); }

  std::unique_ptr<DiskStore> Open() {
    auto store = DiskStore::Open(config_);
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? *std::move(store) : nullptr;
  }

  DiskStore::Config config_ = {
      .folder = absl::StrCat(testing::TempDir(), "disk_store_test.", getpid()),
      .max_bytes = kMaxBytes,
      .block_bytes = kBlockBytes,
      .digest = 7};
};

void WriteBlock(const DiskStore& store, uint32_t slot, int content) {
  const Buffer block = BufferOf(store, content);
  ASSERT_TRUE(store.EraseRecord(slot).ok());
  ASSERT_TRUE(
      Move(
          {.part = store.PartOf(slot), .memory = block.get(), .is_write = true})
          .ok());
}

void WriteTo(const DiskStore& store, uint32_t slot, int content) {
  WriteBlock(store, slot, content);
  ASSERT_TRUE(store
                  .WriteRecord(slot, {.hash = HashOf(slot),
                                      .checksum = uint64_t{slot} + 100,
                                      .ordinal = slot + 1,
                                      .ns_digest = uint64_t{slot} + 200})
                  .ok());
}

TEST_F(DiskStoreTest, BlocksAreReadBack) {
  const auto store = Open();
  for (uint32_t slot = 0; slot < store->slots(); ++slot) {
    WriteTo(*store, slot, static_cast<int>(slot));
  }
  for (uint32_t slot = 0; slot < store->slots(); ++slot) {
    const Buffer read = BufferOf(*store, 255);
    ASSERT_TRUE(Move({.part = store->PartOf(slot),
                      .memory = read.get(),
                      .is_write = false})
                    .ok());
    EXPECT_EQ(
        std::memcmp(read.get(), BufferOf(*store, static_cast<int>(slot)).get(),
                    store->buffer_bytes()),
        0);
  }
}

TEST_F(DiskStoreTest, TheFilesTakeNoMoreThanTheyMay) {
  const auto store = Open();
  EXPECT_EQ(store->slots(), (kMaxBytes - 4096) / (2 * 4096 + 64));
  uint64_t bytes = 0;
  for (const auto& file : std::filesystem::directory_iterator(config_.folder)) {
    struct stat status;
    ASSERT_EQ(stat(file.path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600u);
    // The room is allocated, not only promised by the file's size.
    EXPECT_GE(status.st_blocks * 512, status.st_size);
    bytes += file.file_size();
  }
  EXPECT_LE(bytes, kMaxBytes);
}

TEST_F(DiskStoreTest, TooSmallASizeIsRefused) {
  config_.max_bytes = 8000;
  const auto store = DiskStore::Open(config_);
  EXPECT_THAT(store.status().message(),
              HasSubstr("tier-disk-bytes is 8000; must be at least 12352"));
}

TEST_F(DiskStoreTest, AFolderThatAnotherUsesIsRefused) {
  const auto store = Open();
  EXPECT_THAT(DiskStore::Open(config_).status().message(),
              HasSubstr("another pandod uses"));
}

TEST_F(DiskStoreTest, AFileOfSomethingElseIsLeftAlone) {
  std::filesystem::create_directory(config_.folder);
  const std::string path = config_.folder + "/index";
  for (const std::string& content :
       {std::string("short"), std::string("as long as a header, or longer"),
        std::string(100, '\0')}) {
    std::ofstream(path) << content;
    const auto mode = std::filesystem::status(path).permissions();
    EXPECT_THAT(DiskStore::Open(config_).status().message(),
                HasSubstr("where the file index is not of a tier"));
    std::ifstream file(path);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), content);
    EXPECT_EQ(std::filesystem::status(path).permissions(), mode);
  }
}

TEST_F(DiskStoreTest, AFileWithTwoNamesIsRefused) {
  Open();
  std::filesystem::create_hard_link(config_.folder + "/segment-00000",
                                    config_.folder + "/other");
  EXPECT_THAT(DiskStore::Open(config_).status().message(),
              HasSubstr("has 2 names"));
}

TEST_F(DiskStoreTest, WhatAKilledProcessWroteIsFound) {
  if (fork() == 0) {
    const auto store = Open();
    WriteTo(*store, 3, 33);
    WriteTo(*store, 5, 55);
    // The process is killed while it replaces the block in slot 3.
    WriteBlock(*store, 3, 34);
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  wait(&status);
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  const auto store = Open();
  const auto found = store->TakeFound();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].slot, 5u);
  EXPECT_EQ(found[0].record.hash, HashOf(5));
  EXPECT_EQ(found[0].record.checksum, 105u);
  EXPECT_EQ(found[0].record.ordinal, 6u);
  EXPECT_EQ(found[0].record.ns_digest, 205u);
}

TEST_F(DiskStoreTest, ErasedAndDamagedRecordsAreNotFound) {
  {
    const auto store = Open();
    for (const uint32_t slot : {1, 2, 3}) WriteTo(*store, slot, 1);
    ASSERT_TRUE(store->EraseRecord(1).ok());
  }
  {
    std::fstream index(config_.folder + "/index",
                       std::ios::in | std::ios::out | std::ios::binary);
    index.seekp(4096 + 2 * 64 + 9);
    index.put('x');
  }
  const auto found = Open()->TakeFound();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].slot, 3u);
}

TEST_F(DiskStoreTest, BlocksOfAnotherModelOrShapeAreNotFound) {
  WriteTo(*Open(), 1, 1);
  config_.digest = 8;
  EXPECT_TRUE(Open()->TakeFound().empty());
  config_.digest = 7;
  EXPECT_TRUE(Open()->TakeFound().empty());
}

TEST_F(DiskStoreTest, WhatFitsIsFoundWhenTheSizeChanges) {
  WriteTo(*Open(), 1, 1);
  WriteTo(*Open(), 9, 9);
  config_.max_bytes = 2 * kMaxBytes;
  EXPECT_EQ(Open()->TakeFound().size(), 2u);
  config_.max_bytes = kMaxBytes / 2;
  EXPECT_EQ(Open()->TakeFound().size(), 1u);
}

}  // namespace
}  // namespace pando
