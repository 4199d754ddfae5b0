// Tests the contract of every shared store (tiers/shared/remote_store.h), on
// which RemoteTier relies.
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "os/monotonic_clock.h"
#include "tests/tiers/hashes.h"
#include "tiers/redis/redis_store.h"
#include "tiers/redis/socket_stream.h"
#include "tiers/shared/folder_store.h"
#include "tiers/shared/remote_store.h"

namespace pando {
namespace {

namespace fs = std::filesystem;

constexpr size_t kValueBytes = 1000;
constexpr uint64_t kModel = 1;
constexpr uint64_t kNs = 7;
constexpr uint64_t kOtherNs = 8;

absl::Time Late() { return MonotonicNow() + absl::Minutes(2); }

// The place that has the blocks of one test.
class Place {
 public:
  virtual ~Place() = default;
  // Returns why there is no such place here; empty if there is one.
  virtual std::string why_not() const { return ""; }
  // Opens the store as a process does that was started for this model.
  virtual std::unique_ptr<RemoteStore> Open(uint64_t model) = 0;
};

fs::path MakeFolder() {
  std::string folder = fs::temp_directory_path() / "pando_store_XXXXXX";
  return mkdtemp(folder.data());
}

class FolderPlace final : public Place {
 public:
  ~FolderPlace() override { fs::remove_all(folder_); }
  std::unique_ptr<RemoteStore> Open(uint64_t model) override {
    auto store = FolderStore::Open("tier-shared", folder_, model);
    EXPECT_TRUE(store.ok()) << store.status();
    return *std::move(store);
  }

 private:
  const fs::path folder_ = MakeFolder();
};

// A Redis server on a Unix socket that keeps nothing on disk. Debian's
// redis-server is the program redis-check-rdb under another name, in a package
// that also starts a service when it is installed.
class RedisPlace final : public Place {
 public:
  RedisPlace() {
    if (!why_not().empty()) return;
    const std::string dir = folder_;
    std::vector<std::string> words = {"redis-server",
                                      "--port",
                                      "0",
                                      "--unixsocket",
                                      socket_,
                                      "--dir",
                                      dir,
                                      "--save",
                                      "",
                                      "--logfile",
                                      dir + "/log"};
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    EXPECT_EQ(posix_spawn(&process_, kProgram, nullptr, nullptr,
                          arguments.data(), environ),
              0);
    while (!ConnectTo({.host = socket_}, Late()).ok()) {
      if (waitpid(process_, nullptr, WNOHANG) != 0) {
        ADD_FAILURE() << "the server has ended";
        process_ = 0;
        return;
      }
      absl::SleepFor(absl::Milliseconds(1));
    }
  }
  ~RedisPlace() override {
    if (process_ > 0) {
      kill(process_, SIGKILL);
      waitpid(process_, nullptr, 0);
    }
    fs::remove_all(folder_);
  }
  std::string why_not() const override {
    return fs::exists(kProgram) ? ""
                                : absl::StrCat("there is no ", kProgram,
                                               ": apt install redis-tools");
  }
  std::unique_ptr<RemoteStore> Open(uint64_t model) override {
    RedisStore::Config config;
    config.seeds.push_back({.host = socket_});
    auto store = RedisStore::Open(std::move(config), model);
    EXPECT_TRUE(store.ok()) << store.status();
    return *std::move(store);
  }

 private:
  static constexpr char kProgram[] = "/usr/bin/redis-check-rdb";

  const fs::path folder_ = MakeFolder();
  std::string socket_ = folder_ / "socket";
  pid_t process_ = 0;
};

struct Kind {
  std::string name;
  std::function<std::unique_ptr<Place>()> make;
};

BlockKey KeyOf(size_t number, uint64_t ns = kNs) {
  return {.ns_digest = ns,
          .hash = HashOf(number),
          .ordinal = static_cast<uint32_t>(number)};
}

std::vector<BlockKey> KeysOf(std::vector<size_t> numbers, uint64_t ns = kNs) {
  std::vector<BlockKey> keys;
  for (const size_t number : numbers) keys.push_back(KeyOf(number, ns));
  return keys;
}

std::vector<std::byte> ValueOf(size_t number, size_t bytes = kValueBytes) {
  return std::vector<std::byte>(bytes, static_cast<std::byte>(number));
}

class RemoteStoreContract : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    place_ = GetParam().make();
    if (!place_->why_not().empty()) GTEST_SKIP() << place_->why_not();
    store_ = place_->Open(kModel);
  }

  static absl::Status Put(RemoteStore& store, size_t number, uint64_t ns = kNs,
                          size_t bytes = kValueBytes) {
    std::vector<std::byte> value = ValueOf(number, bytes);
    RemoteStore::Transfer block = {KeyOf(number, ns), value, {}};
    store.Put({&block, 1}, absl::Now(), Late());
    return block.status;
  }
  absl::Status Put(size_t number, uint64_t ns = kNs) {
    return Put(*store_, number, ns);
  }
  static absl::StatusOr<std::vector<std::byte>> Get(RemoteStore& store,
                                                    size_t number,
                                                    uint64_t ns = kNs) {
    std::vector<std::byte> value(kValueBytes);
    RemoteStore::Transfer block = {KeyOf(number, ns), value, {}};
    store.Get({&block, 1}, Late());
    if (!block.status.ok()) return block.status;
    return value;
  }
  // Returns how many of the blocks 0, 1, ... the store has before the first one
  // that it lacks; at most `count`.
  size_t CountPresent(size_t count, uint64_t ns = kNs) {
    std::vector<BlockKey> keys;
    for (size_t i = 0; i < count; ++i) keys.push_back(KeyOf(i, ns));
    const auto presence = store_->CountPresent(keys, Late());
    EXPECT_TRUE(presence.ok()) << presence.status();
    EXPECT_EQ(presence->lacks_next, presence->blocks < count);
    return presence->blocks;
  }

  std::unique_ptr<Place> place_;
  std::unique_ptr<RemoteStore> store_;
};

TEST_P(RemoteStoreContract, WhatOnePutsAnotherOfTheSameModelGets) {
  ASSERT_TRUE(Put(3).ok());
  const auto other = place_->Open(kModel);
  EXPECT_EQ(*Get(*other, 3), ValueOf(3));
  EXPECT_TRUE(absl::IsNotFound(Get(*other, 4).status()));
  EXPECT_TRUE(absl::IsNotFound(Get(*other, 3, kOtherNs).status()));
  EXPECT_TRUE(absl::IsNotFound(Get(*place_->Open(kModel + 1), 3).status()));
}

TEST_P(RemoteStoreContract, ManyBlocksTravelAtOnceEachWithAStatusOfItsOwn) {
  constexpr size_t kBlocks = 300;
  std::vector<std::vector<std::byte>> values;
  std::vector<RemoteStore::Transfer> blocks;
  for (size_t i = 0; i < kBlocks; ++i) values.push_back(ValueOf(i));
  for (size_t i = 0; i < kBlocks; ++i)
    blocks.push_back({KeyOf(i), values[i], {}});
  store_->Put(blocks, absl::Now(), Late());
  for (const RemoteStore::Transfer& block : blocks) {
    ASSERT_TRUE(block.status.ok()) << block.status;
  }
  ASSERT_TRUE(store_->Erase(KeyOf(7)).ok());
  for (auto& value : values) std::ranges::fill(value, std::byte{});
  store_->Get(blocks, Late());
  for (size_t i = 0; i < kBlocks; ++i) {
    if (i == 7) {
      EXPECT_TRUE(absl::IsNotFound(blocks[i].status)) << blocks[i].status;
    } else {
      ASSERT_TRUE(blocks[i].status.ok()) << blocks[i].status;
      EXPECT_EQ(values[i], ValueOf(i)) << i;
    }
  }
}

TEST_P(RemoteStoreContract, AValueOfAnotherLengthIsALoss) {
  for (const size_t bytes : {kValueBytes - 1, kValueBytes + 1}) {
    ASSERT_TRUE(Put(*store_, bytes, kNs, bytes).ok());
    EXPECT_TRUE(absl::IsDataLoss(Get(*store_, bytes).status())) << bytes;
  }
  // The bytes that were not read do not disturb the next call.
  ASSERT_TRUE(Put(0).ok());
  EXPECT_EQ(*Get(*store_, 0), ValueOf(0));
}

TEST_P(RemoteStoreContract, ABlockThatIsPutAgainIsThere) {
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(Put(5).ok());
  EXPECT_EQ(*Get(*store_, 5), ValueOf(5));
}

TEST_P(RemoteStoreContract, BlocksAreCountedUpToTheFirstThatIsMissing) {
  for (const size_t number : {0, 1, 2, 4}) ASSERT_TRUE(Put(number).ok());
  EXPECT_EQ(CountPresent(5), 3u);
  EXPECT_EQ(CountPresent(2), 2u);
  EXPECT_EQ(CountPresent(5, kOtherNs), 0u);
}

TEST_P(RemoteStoreContract, TouchSaysWhichAreThere) {
  for (const size_t number : {1, 2, 4}) ASSERT_TRUE(Put(number).ok());
  const auto touched = store_->Touch(KeysOf({1, 2, 3, 4}), absl::Now(), Late());
  ASSERT_TRUE(touched.ok()) << touched.status();
  EXPECT_EQ(*touched, (std::vector<bool>{true, true, false, true}));
}

TEST_P(RemoteStoreContract, WhatHasNoTimeIsNotDone) {
  ASSERT_TRUE(Put(0).ok());
  const absl::Time past = MonotonicNow() - absl::Nanoseconds(1);
  const BlockKey key = KeyOf(0);
  const auto presence = store_->CountPresent({&key, 1}, past);
  if (presence.ok()) {
    EXPECT_EQ(presence->blocks, 0u);
    EXPECT_FALSE(presence->lacks_next);
  }
  std::vector<std::byte> value(kValueBytes);
  RemoteStore::Transfer block = {key, value, {}};
  store_->Get({&block, 1}, past);
  EXPECT_TRUE(absl::IsDeadlineExceeded(block.status)) << block.status;
  block.key = KeyOf(1);
  store_->Put({&block, 1}, absl::Now(), past);
  EXPECT_TRUE(absl::IsDeadlineExceeded(block.status)) << block.status;
  EXPECT_EQ(CountPresent(2), 1u);
}

TEST_P(RemoteStoreContract, ErasedBlocksAreGone) {
  for (size_t i = 0; i < 3; ++i) ASSERT_TRUE(Put(i).ok());
  EXPECT_TRUE(store_->Erase(KeyOf(1)).ok());
  EXPECT_TRUE(store_->Erase(KeyOf(1)).ok());
  EXPECT_EQ(CountPresent(3), 1u);
}

TEST_P(RemoteStoreContract, ANamespaceIsErasedOrAll) {
  ASSERT_TRUE(Put(0, kNs).ok());
  ASSERT_TRUE(Put(0, kOtherNs).ok());
  EXPECT_TRUE(store_->EraseAll(kNs).ok());
  EXPECT_TRUE(store_->EraseAll(kNs).ok());
  EXPECT_EQ(CountPresent(1, kNs), 0u);
  EXPECT_EQ(CountPresent(1, kOtherNs), 1u);
  EXPECT_TRUE(store_->EraseAll(std::nullopt).ok());
  EXPECT_EQ(CountPresent(1, kOtherNs), 0u);
  while (store_->FreeSome()) continue;
  EXPECT_TRUE(Put(0).ok());
  EXPECT_EQ(CountPresent(1), 1u);
}

TEST_P(RemoteStoreContract, ManyThreadsUseOneStore) {
  constexpr size_t kThreads = 4;
  constexpr size_t kBlocks = 50;
  std::vector<std::thread> threads;
  for (size_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([this, thread] {
      for (size_t i = 0; i < kBlocks; ++i) {
        const size_t number = thread * kBlocks + i;
        EXPECT_TRUE(Put(number).ok());
        EXPECT_EQ(*Get(*store_, number), ValueOf(number));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(CountPresent(kThreads * kBlocks), kThreads * kBlocks);
}

INSTANTIATE_TEST_SUITE_P(
    Stores, RemoteStoreContract,
    testing::Values(
        Kind{"Folder", [] { return std::make_unique<FolderPlace>(); }},
        Kind{"Redis", [] { return std::make_unique<RedisPlace>(); }}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace pando
