#include "tiers/shared/remote_tier.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "gpu/host_kv_pool.h"
#include "gtest/gtest.h"
#include "tests/tiers/failing_pages.h"
#include "tests/tiers/hashes.h"
#include "tiers/copying/mapped_pages.h"

namespace pando {
namespace {

constexpr uint32_t kPages = 16;
constexpr uint64_t kNs = 5;
constexpr uint64_t kDigest = 11;
// The fake store answers before these timeouts, however slow the machine is.
constexpr RemoteTier::Timeouts kPatient = {
    .ask = absl::Hours(1), .get = absl::Hours(1), .put = absl::Hours(1)};

// A store in memory that fails and lies as a test orders.
class FakeStore final : public RemoteStore {
 public:
  struct Orders {
    absl::Status get;
    std::set<PageHash> lost;  // blocks that it hides
    absl::Status put;
    absl::Status ask;
    std::function<void()> after_put = [] {};
    absl::Notification* may_free = nullptr;  // null: FreeSome does not wait
  };
  using Values = std::map<PageHash, std::vector<std::byte>>;

  FakeStore(Orders* orders, Values* values)
      : orders_(orders), values_(values) {}

  absl::StatusOr<Presence> CountPresent(std::span<const BlockKey> keys,
                                        absl::Time) override {
    absl::MutexLock hold(&mutex_);
    if (!orders_->ask.ok()) return orders_->ask;
    size_t count = 0;
    for (const BlockKey& key : keys) {
      if (orders_->lost.contains(key.hash)) return Presence{.blocks = count};
      if (!values_->contains(key.hash)) {
        return Presence{.blocks = count, .lacks_next = true};
      }
      ++count;
    }
    return Presence{.blocks = count};
  }
  void Get(std::span<Transfer> blocks, absl::Time) override {
    absl::MutexLock hold(&mutex_);
    for (Transfer& block : blocks) {
      const auto it = values_->find(block.key.hash);
      block.status =
          it == values_->end() ? absl::NotFoundError("") : orders_->get;
      if (orders_->lost.contains(block.key.hash)) {
        block.status = absl::UnavailableError("gone");
      }
      if (!block.status.ok()) continue;
      std::ranges::copy(it->second, block.value.begin());
    }
  }
  void Put(std::span<Transfer> blocks, absl::Time, absl::Time) override {
    absl::MutexLock hold(&mutex_);
    for (Transfer& block : blocks) {
      block.status = orders_->put;
      if (!block.status.ok()) continue;
      (*values_)[block.key.hash] = {block.value.begin(), block.value.end()};
    }
    if (!blocks.empty()) orders_->after_put();
  }
  absl::StatusOr<std::vector<bool>> Touch(std::span<const BlockKey> keys,
                                          absl::Time, absl::Time) override {
    absl::MutexLock hold(&mutex_);
    ++touches_;
    std::vector<bool> are_present;
    for (const BlockKey& key : keys) {
      are_present.push_back(values_->contains(key.hash));
    }
    return are_present;
  }
  absl::Status Erase(const BlockKey& key) override {
    absl::MutexLock hold(&mutex_);
    values_->erase(key.hash);
    return absl::OkStatus();
  }
  absl::Status EraseAll(std::optional<uint64_t>) override {
    absl::MutexLock hold(&mutex_);
    values_->clear();
    has_erased_ = true;
    return absl::OkStatus();
  }
  bool FreeSome() override {
    {
      absl::MutexLock hold(&mutex_);
      if (!std::exchange(has_erased_, false)) return false;
    }
    if (orders_->may_free != nullptr) {
      orders_->may_free->WaitForNotification();
    }
    return false;
  }

  int touches() {
    absl::MutexLock hold(&mutex_);
    return touches_;
  }

 private:
  Orders* const orders_;
  Values* const values_;
  absl::Mutex mutex_;
  int touches_ ABSL_GUARDED_BY(mutex_) = 0;
  bool has_erased_ ABSL_GUARDED_BY(mutex_) = false;
};

class RemoteTierTest : public testing::Test {
 protected:
  RemoteTierTest()
      : pool_(*HostKvPool::Create({.layers = 3,
                                   .kv_planes = 2,
                                   .heads = 2,
                                   .head_size = 24,
                                   .dtype = DType::kFloat32,
                                   .page_tokens = 4,
                                   .order = LayoutOrder::kLayerFirst},
                                  kPages, 2)),
        pages_(*MappedPages::Map(*pool_)) {
    auto store = std::make_unique<FakeStore>(&orders_, &values_);
    store_ = store.get();
    tier_ = std::make_unique<RemoteTier>(
        BlockValues(std::make_unique<FailingPages>(*pool_, &copies_), kDigest,
                    nullptr),
        std::move(store), kPatient);
  }

  void Fill(PageId page, uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<std::byte> block(pages_->block_bytes());
    for (std::byte& byte : block) byte = static_cast<std::byte>(random());
    EXPECT_TRUE(pages_->CopyIn(block.data(), page).ok());
  }
  std::vector<std::byte> Read(PageId page) {
    std::vector<std::byte> block(pages_->block_bytes());
    EXPECT_TRUE(pages_->CopyOut(page, block.data()).ok());
    return block;
  }
  // Stores as many pages as `prompt` has, from the front of the pool.
  void Store(std::span<const PageHash> prompt, bool is_confirmed = true) {
    std::vector<PageId> pages;
    for (uint32_t i = 0; i < prompt.size(); ++i) {
      pages.push_back(PageId(i));
      Fill(pages.back(), i);
    }
    tier_->BeginPrompt(kNs, prompt);
    tier_->Store(kNs, prompt, 0, pages, [&] { return is_confirmed; });
    tier_->EndPrompt();
  }
  // Loads blocks into the back of the pool.
  size_t Load(std::span<const PageHash> run) {
    std::vector<PageId> pages;
    for (uint32_t i = 0; i < run.size(); ++i) {
      pages.push_back(PageId(kPages / 2 + i));
    }
    return tier_->Load(kNs, run, pages);
  }
  void ExpectLoaded(size_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      EXPECT_EQ(Read(PageId(kPages / 2 + i)), Read(PageId(i))) << i;
    }
  }

  FailingPages::Orders copies_;
  FakeStore::Orders orders_;
  FakeStore::Values values_;
  const std::unique_ptr<HostKvPool> pool_;
  const std::unique_ptr<MappedPages> pages_;
  FakeStore* store_ = nullptr;  // owned by the tier
  std::unique_ptr<RemoteTier> tier_;
  const std::vector<PageHash> prompt_ = Hashes(0, 6);
};

TEST_F(RemoteTierTest, WhatIsStoredIsLoaded) {
  Store(prompt_);
  EXPECT_EQ(tier_->CountPresent(kNs, prompt_), 6u);
  EXPECT_EQ(Load(prompt_), 6u);
  ExpectLoaded(6);
  EXPECT_EQ(tier_->figures().stored_pages, 6u);
  EXPECT_EQ(tier_->figures().loaded_pages, 6u);
}

TEST_F(RemoteTierTest, PagesAreCopiedWhileThoseBeforeThemAreOnTheirWay) {
  absl::Notification copied;
  orders_.after_put = [&] { copied.WaitForNotification(); };
  const std::vector<PageId> pages = {PageId(0), PageId(1), PageId(2)};
  tier_->Store(kNs, prompt_, 0, pages, [] { return true; });
  tier_->Store(kNs, prompt_, 3, pages, [&] {
    copied.Notify();
    return true;
  });
  tier_->EndPrompt();
  EXPECT_EQ(tier_->figures().stored_pages, 6u);
  EXPECT_EQ(tier_->CountStored(prompt_), 6u);
}

TEST_F(RemoteTierTest, PagesThatCannotBeCopiedOutAreNotStored) {
  copies_.out = absl::UnavailableError("nobody copies");
  Store(prompt_);
  EXPECT_TRUE(values_.empty());
  EXPECT_EQ(tier_->figures().failed_writes, 6u);
  copies_.out = absl::OkStatus();
  Store(prompt_);
  EXPECT_EQ(tier_->figures().stored_pages, 6u);
}

TEST_F(RemoteTierTest, BlocksThatCannotBeCopiedInAreAMissAndStay) {
  Store(prompt_);
  copies_.in = absl::UnavailableError("nobody copies");
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Load(prompt_), 0u);
  EXPECT_EQ(tier_->figures().damaged_pages, 0u);
  EXPECT_EQ(tier_->figures().failed_reads, 5u);
  // The tier does not blame the store for copies that fail.
  EXPECT_FALSE(tier_->figures().are_loads_refused);
  copies_.in = absl::OkStatus();
  EXPECT_EQ(Load(prompt_), 6u);
  ExpectLoaded(6);
}

TEST_F(RemoteTierTest, WhatIsThereIsNeitherStoredNorAskedForAgain) {
  Store(std::span(prompt_).first(4));
  EXPECT_TRUE(tier_->TouchIfStored(std::span(prompt_).first(4)));
  EXPECT_FALSE(tier_->TouchIfStored(prompt_));
  const int touches = store_->touches();
  Store(prompt_);
  EXPECT_EQ(tier_->figures().stored_pages, 6u);
  EXPECT_EQ(store_->touches(), touches + 1);
  tier_->BeginPrompt(kNs, prompt_);
  EXPECT_EQ(store_->touches(), touches + 1);
}

TEST_F(RemoteTierTest, WhatOthersErasedIsStoredAgainOnceItWasMissed) {
  Store(prompt_);
  values_.erase(prompt_[4]);
  EXPECT_EQ(tier_->CountPresent(kNs, prompt_), 4u);
  Store(prompt_);
  EXPECT_EQ(tier_->CountPresent(kNs, prompt_), 6u);
  EXPECT_EQ(tier_->figures().stored_pages, 7u);
}

TEST_F(RemoteTierTest, WhatTheStoreCannotTellIsStillKnown) {
  Store(prompt_);
  orders_.lost = {prompt_[4]};
  EXPECT_EQ(tier_->CountPresent(kNs, prompt_), 4u);
  EXPECT_TRUE(tier_->TouchIfStored(prompt_));
}

TEST_F(RemoteTierTest, PagesWhoseLockWasLostAreNotStored) {
  Store(prompt_, false);
  EXPECT_TRUE(values_.empty());
  EXPECT_EQ(tier_->figures().stored_pages, 0u);
}

TEST_F(RemoteTierTest, AnyBitThatIsFlippedIsAMissAndErased) {
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  Store(prompt_);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::byte> before = values_[prompt_[2]];
    std::vector<std::byte>& value = values_[prompt_[2]];
    value[random() % value.size()] ^=
        static_cast<std::byte>(1u << random() % 8);
    EXPECT_EQ(Load(prompt_), 2u);
    EXPECT_FALSE(values_.contains(prompt_[2]));
    values_[prompt_[2]] = std::move(before);
  }
  EXPECT_EQ(tier_->figures().damaged_pages, 200u);
  EXPECT_FALSE(tier_->figures().are_loads_refused);
  EXPECT_EQ(Load(prompt_), 6u);
  ExpectLoaded(6);
}

TEST_F(RemoteTierTest, WhatWasDamagedIsStoredAgain) {
  Store(prompt_);
  values_[prompt_[2]].back() ^= std::byte{1};
  EXPECT_EQ(Load(prompt_), 2u);
  Store(prompt_);
  EXPECT_EQ(Load(prompt_), 6u);
  ExpectLoaded(6);
}

TEST_F(RemoteTierTest, ValuesThatWereSwappedAreMisses) {
  Store(prompt_);
  std::swap(values_[prompt_[1]], values_[prompt_[2]]);
  EXPECT_EQ(Load(prompt_), 1u);
  EXPECT_EQ(tier_->figures().damaged_pages, 2u);
}

TEST_F(RemoteTierTest, AStoreThatIsFullStillGivesWhatItHas) {
  Store(std::span(prompt_).first(3));
  orders_.put = absl::ResourceExhaustedError("full");
  for (size_t i = 0; i < CircuitBreaker::kFailures; ++i) Store(prompt_);
  EXPECT_EQ(tier_->figures().failed_writes, 3u * CircuitBreaker::kFailures);
  EXPECT_TRUE(tier_->figures().are_stores_refused);
  Store(prompt_);
  EXPECT_EQ(tier_->figures().dropped_pages, 3u);
  EXPECT_EQ(Load(prompt_), 3u);
  EXPECT_FALSE(tier_->figures().are_loads_refused);
}

TEST_F(RemoteTierTest, AStoreThatFailsIsLeftAlone) {
  Store(prompt_);
  orders_.ask = absl::UnavailableError("gone");
  for (int i = 0; i < CircuitBreaker::kFailures; ++i) {
    EXPECT_EQ(tier_->CountPresent(kNs, prompt_), 0u);
  }
  EXPECT_TRUE(tier_->figures().are_loads_refused);
  EXPECT_EQ(Load(prompt_), 0u);
  EXPECT_EQ(tier_->figures().failed_reads, 6u * CircuitBreaker::kFailures);
}

TEST_F(RemoteTierTest, AStoreThatSaysWhatItHasAndDoesNotGiveItIsLeftAlone) {
  Store(prompt_);
  orders_.get = absl::UnavailableError("gone");
  for (int i = 0; i < CircuitBreaker::kFailures; ++i) {
    EXPECT_FALSE(tier_->figures().are_loads_refused);
    EXPECT_EQ(tier_->CountPresent(kNs, prompt_), 6u);
    EXPECT_EQ(Load(prompt_), 0u);
  }
  EXPECT_TRUE(tier_->figures().are_loads_refused);
}

TEST_F(RemoteTierTest, AStoreThatGivesTheFrontOfARunIsNotLeftAlone) {
  Store(prompt_);
  orders_.lost = {prompt_[3]};
  for (int i = 0; i <= CircuitBreaker::kFailures; ++i) {
    EXPECT_EQ(Load(prompt_), 3u);
  }
  ExpectLoaded(3);
  EXPECT_FALSE(tier_->figures().are_loads_refused);
  EXPECT_EQ(tier_->figures().failed_reads, 1u + CircuitBreaker::kFailures);
}

TEST_F(RemoteTierTest, WhatCannotBeReadEndsALoad) {
  Store(prompt_);
  orders_.get = absl::UnavailableError("gone");
  EXPECT_EQ(Load(prompt_), 0u);
  EXPECT_EQ(tier_->figures().failed_reads, 6u);
  orders_.get = absl::OkStatus();
  EXPECT_EQ(Load(prompt_), 6u);
}

TEST_F(RemoteTierTest, WhatIsForgottenWhileItIsStoredIsErased) {
  orders_.after_put = [&] { tier_->Forget(kNs); };
  Store(prompt_);
  EXPECT_EQ(tier_->figures().stored_pages, 0u);
  EXPECT_EQ(tier_->figures().dropped_pages, 6u);
  tier_.reset();
  EXPECT_TRUE(values_.empty());
}

TEST_F(RemoteTierTest, WhatWasForgottenIsStoredAgain) {
  Store(prompt_);
  tier_->Forget(std::nullopt);
  EXPECT_EQ(tier_->CountStored(prompt_), 0u);
  // The tier stores nothing until all is erased, so this takes several tries.
  while (tier_->CountStored(prompt_) < prompt_.size()) Store(prompt_);
  EXPECT_EQ(Load(prompt_), 6u);
}

TEST_F(RemoteTierTest, NobodyWaitsUntilWhatWasForgottenIsFreed) {
  absl::Notification may_free;
  orders_.may_free = &may_free;
  Store(prompt_);
  tier_->Forget(std::nullopt);
  while (tier_->CountStored(prompt_) < prompt_.size()) Store(prompt_);
  EXPECT_EQ(Load(prompt_), 6u);
  may_free.Notify();
  tier_.reset();  // the tier's thread uses the notification
}

}  // namespace
}  // namespace pando
