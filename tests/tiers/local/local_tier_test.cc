#include "tiers/local/local_tier.h"

#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gpu/host_kv_pool.h"
#include "gtest/gtest.h"
#include "tests/support/no_io_uring.h"
#include "tests/tiers/failing_pages.h"
#include "tests/tiers/hashes.h"
#include "tiers/copying/mapped_pages.h"
#include "tiers/local/disk_store.h"
#include "tiers/local/host_store.h"

namespace pando {
namespace {

constexpr uint32_t kPages = 16;
constexpr uint32_t kShards = 2;
constexpr uint64_t kNs = 5;  // the digest of a namespace

std::unique_ptr<HostKvPool> MakePool(LayoutOrder order) {
  auto pool = HostKvPool::Create({.layers = 3,
                                  .kv_planes = 2,
                                  .heads = 2,
                                  .head_size = 24,
                                  .dtype = DType::kFloat32,
                                  .page_tokens = 4,
                                  .order = order},
                                 kPages, kShards);
  EXPECT_TRUE(pool.ok()) << pool.status();
  return *std::move(pool);
}

// Fills and reads the pages of a pool as a worker does.
class Pages {
 public:
  explicit Pages(const KvPool& pool) : pages_(*MappedPages::Map(pool)) {}

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

 private:
  std::unique_ptr<MappedPages> pages_;
};

class LocalTierTest : public testing::TestWithParam<LayoutOrder> {
 protected:
  LocalTierTest() { std::filesystem::remove_all(folder_); }
  ~LocalTierTest() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<LocalTier> Open(const KvPool& pool) {
    auto pages = std::make_unique<FailingPages>(pool, &copies_);
    auto store = DiskStore::Open({.folder = folder_,
                                  .max_bytes = 1 << 20,
                                  .block_bytes = pages->block_bytes(),
                                  .digest = pages->Digest(model_)});
    EXPECT_TRUE(store.ok()) << store.status();
    return std::make_unique<LocalTier>(std::move(pages), *std::move(store));
  }
  // Changes the byte at `offset` in the first segment.
  void Flip(std::streamoff offset) {
    std::fstream file(folder_ + "/segment-00000",
                      std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(offset);
    const int byte = file.get();
    file.seekp(offset);
    file.put(static_cast<char>(byte ^ 1));
  }

  FailingPages::Orders copies_;
  const std::vector<PageId> first_ = {PageId(1), PageId(2), PageId(3)};
  const std::vector<PageId> second_ = {PageId(9), PageId(8), PageId(7)};
  const std::string folder_ =
      absl::StrCat(testing::TempDir(), "local_tier_test.", getpid());
  std::string model_ = "m";
};

bool Confirm() { return true; }

TEST_P(LocalTierTest, PagesComeBackBitEqualAlsoAfterARestart) {
  const auto pool = MakePool(GetParam());
  Pages pages(*pool);
  for (const PageId page : first_) pages.Fill(page, page.value());
  Open(*pool)->Store(kNs, Hashes(0, 3), 0, first_, Confirm);
  const auto tier = Open(*pool);
  EXPECT_EQ(tier->CountStored(Hashes(0, 4)), 3u);
  EXPECT_EQ(tier->Load(Hashes(0, 3), second_), 3u);
  for (size_t i = 0; i < first_.size(); ++i) {
    EXPECT_EQ(pages.Read(second_[i]), pages.Read(first_[i]));
  }
  EXPECT_EQ(tier->figures().loaded_pages, 3u);
}

TEST_P(LocalTierTest, PagesComeBackWhereTheSandboxForbidsIoUring) {
  const auto pool = MakePool(GetParam());
  // A sandbox may forbid making a ring, or only using one.
  for (const unsigned forbidden : {SYS_io_uring_setup, SYS_io_uring_enter}) {
    Pages pages(*pool);
    for (const PageId page : first_) pages.Fill(page, page.value());
    std::thread([&] {
      ForbidCall(forbidden);
      const auto tier = Open(*pool);
      tier->Store(kNs, Hashes(0, 3), 0, first_, Confirm);
      EXPECT_EQ(tier->Load(Hashes(0, 3), second_), 3u);
    }).join();
    for (size_t i = 0; i < first_.size(); ++i) {
      EXPECT_EQ(pages.Read(second_[i]), pages.Read(first_[i]));
    }
  }
}

TEST_P(LocalTierTest, AnotherOrderOfThePoolReadsTheSamePages) {
  const auto pool = MakePool(GetParam());
  const auto other =
      MakePool(GetParam() == LayoutOrder::kPageFirst ? LayoutOrder::kLayerFirst
                                                     : LayoutOrder::kPageFirst);
  Pages pages(*pool);
  Pages others(*other);
  for (const PageId page : first_) pages.Fill(page, page.value());
  Open(*pool)->Store(kNs, Hashes(0, 3), 0, first_, Confirm);
  EXPECT_EQ(Open(*other)->Load(Hashes(0, 3), second_), 3u);
  for (size_t i = 0; i < first_.size(); ++i) {
    EXPECT_EQ(others.Read(second_[i]), pages.Read(first_[i]));
  }
}

TEST_P(LocalTierTest, AnotherModelFindsNothing) {
  const auto pool = MakePool(GetParam());
  Open(*pool)->Store(kNs, Hashes(0, 3), 0, first_, Confirm);
  model_ = "n";
  EXPECT_EQ(Open(*pool)->CountStored(Hashes(0, 3)), 0u);
}

TEST_P(LocalTierTest, PagesWhoseLockWasLostAreNotStored) {
  const auto pool = MakePool(GetParam());
  const auto tier = Open(*pool);
  tier->Store(kNs, Hashes(0, 3), 0, first_, [] { return false; });
  EXPECT_EQ(tier->CountStored(Hashes(0, 3)), 0u);
  EXPECT_EQ(tier->figures().stored_pages, 0u);
  tier->Store(kNs, Hashes(0, 3), 0, first_, Confirm);
  EXPECT_EQ(tier->figures().stored_pages, 3u);
}

TEST_P(LocalTierTest, ANamespaceIsForgottenForGood) {
  const auto pool = MakePool(GetParam());
  {
    const auto tier = Open(*pool);
    tier->Store(kNs, Hashes(0, 3), 0, first_, Confirm);
    tier->Store(kNs + 1, Hashes(100, 3), 0, second_, Confirm);
    tier->Forget(kNs);
    tier->EraseForgotten();
    EXPECT_EQ(tier->CountStored(Hashes(0, 3)), 0u);
    EXPECT_EQ(tier->CountStored(Hashes(100, 3)), 3u);
  }
  {
    const auto tier = Open(*pool);
    EXPECT_EQ(tier->CountStored(Hashes(0, 3)), 0u);
    EXPECT_EQ(tier->CountStored(Hashes(100, 3)), 3u);
    tier->Forget(kNs + 1);
    tier->Store(kNs, Hashes(0, 3), 0, first_, Confirm);
    tier->Forget(std::nullopt);
    tier->EraseForgotten();
  }
  EXPECT_EQ(Open(*pool)->figures().held_pages, 0u);
}

TEST_P(LocalTierTest, WhatIsForgottenWhileItIsStoredIsNotKept) {
  const auto pool = MakePool(GetParam());
  {
    const auto tier = Open(*pool);
    tier->Store(kNs, Hashes(0, 3), 0, first_, [&] {
      tier->Forget(kNs);
      return true;
    });
    EXPECT_EQ(tier->CountStored(Hashes(0, 3)), 0u);
    EXPECT_EQ(tier->figures().stored_pages, 0u);
  }
  EXPECT_EQ(Open(*pool)->figures().held_pages, 0u);
}

TEST_P(LocalTierTest, AFlippedBitIsAMissAndIsForgotten) {
  const auto pool = MakePool(GetParam());
  Pages pages(*pool);
  for (const PageId page : first_) pages.Fill(page, page.value());
  {
    const auto tier = Open(*pool);
    tier->Store(kNs, Hashes(0, 3), 0, first_, Confirm);
  }
  // The last byte of the second block is changed: a block of 4,608 bytes takes
  // up 8,192 bytes on the disk.
  Flip(8192 + 4607);
  const auto tier = Open(*pool);
  EXPECT_EQ(tier->Load(Hashes(0, 3), second_), 1u);
  EXPECT_EQ(pages.Read(second_[0]), pages.Read(first_[0]));
  EXPECT_EQ(tier->figures().damaged_pages, 1u);
  EXPECT_EQ(tier->CountStored(Hashes(0, 3)), 1u);
}

TEST_P(LocalTierTest, APageThatCannotBeCopiedOutIsNotStored) {
  const auto pool = MakePool(GetParam());
  const auto tier = Open(*pool);
  copies_.out = absl::UnavailableError("nobody copies");
  tier->Store(kNs, Hashes(0, 3), 0, first_, Confirm);
  EXPECT_EQ(tier->CountStored(Hashes(0, 3)), 0u);
  EXPECT_EQ(tier->figures().stored_pages, 0u);
  EXPECT_EQ(tier->figures().failed_writes, 3u);
  copies_.out = absl::OkStatus();
  tier->Store(kNs, Hashes(0, 3), 0, first_, Confirm);
  EXPECT_EQ(tier->CountStored(Hashes(0, 3)), 3u);
}

TEST_P(LocalTierTest, ABlockThatCannotBeCopiedInIsAMissAndStays) {
  const auto pool = MakePool(GetParam());
  Pages pages(*pool);
  for (const PageId page : first_) pages.Fill(page, page.value());
  const auto tier = Open(*pool);
  tier->Store(kNs, Hashes(0, 3), 0, first_, Confirm);
  copies_.in = absl::UnavailableError("nobody copies");
  EXPECT_EQ(tier->Load(Hashes(0, 3), second_), 0u);
  EXPECT_EQ(tier->figures().failed_reads, 3u);
  EXPECT_EQ(tier->figures().damaged_pages, 0u);
  copies_.in = absl::OkStatus();
  EXPECT_EQ(tier->Load(Hashes(0, 3), second_), 3u);
  EXPECT_EQ(pages.Read(second_[2]), pages.Read(first_[2]));
}

TEST_P(LocalTierTest, TheTierOfAKilledStoreHasNoPageOfIt) {
  const auto pool = MakePool(GetParam());
  EXPECT_EXIT(
      {
        const auto tier = Open(*pool);
        tier->Store(kNs, Hashes(0, 2), 0, std::span(first_).first(2), Confirm);
        tier->Store(kNs, Hashes(0, 3), 2, std::span(first_).last(1), [] {
          kill(getpid(), SIGKILL);
          return true;
        });
      },
      testing::KilledBySignal(SIGKILL), "");
  EXPECT_EQ(Open(*pool)->CountStored(Hashes(0, 3)), 2u);
}

// Returns the tokens of a prompt, four for each page, counting up from 0.
std::vector<Token> TokensOf(size_t pages) {
  std::vector<Token> tokens(4 * pages);
  std::iota(tokens.begin(), tokens.end(), 0);
  return tokens;
}

TEST_P(LocalTierTest, WhoFollowsIsToldWhatIsStoredAndWhatIsGone) {
  const auto pool = MakePool(GetParam());
  const auto tier = Open(*pool);
  tier->FollowChanges();
  const NamespaceKey ns = {"lora", std::nullopt};
  const std::vector<Token> tokens = TokensOf(4);
  const std::vector<PageHash> hashes = Hashes(0, 4);
  const HashedPrompt prompt = {ns, tokens, hashes, 4};
  tier->Tell(prompt);
  EXPECT_TRUE(tier->TakeChanges().empty());
  tier->Store(kNs, Hashes(0, 3), 0, first_, Confirm);
  tier->Tell(prompt);
  tier->Tell(prompt);
  const std::vector<TierChange> stored = tier->TakeChanges();
  ASSERT_EQ(stored.size(), 3u);
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(stored[i].hash, hashes[i]);
    ASSERT_TRUE(stored[i].stored.has_value());
    EXPECT_EQ(stored[i].stored->ordinal, i + 1);
    EXPECT_EQ(*stored[i].stored->ns, ns);
    EXPECT_EQ(stored[i].stored->tokens,
              std::vector<Token>({4 * i, 4 * i + 1, 4 * i + 2, 4 * i + 3}));
    if (i > 0) {
      EXPECT_EQ(stored[i].stored->before, hashes[i - 1]);
    }
  }
  tier->Forget(kNs);
  EXPECT_EQ(tier->TakeChanges().size(), 3u);
  // If a block is stored, forgotten and stored again before the changes are
  // taken, the changes come in that order.
  tier->EraseForgotten();
  tier->Store(kNs, Hashes(0, 1), 0, std::span(first_).first(1), Confirm);
  tier->Tell(prompt);
  tier->Forget(kNs);
  tier->EraseForgotten();
  tier->Store(kNs, Hashes(0, 1), 0, std::span(first_).first(1), Confirm);
  tier->Tell(prompt);
  std::vector<bool> are_stored;
  for (const TierChange& change : tier->TakeChanges()) {
    EXPECT_EQ(change.hash, hashes[0]);
    are_stored.push_back(change.stored.has_value());
  }
  EXPECT_EQ(are_stored, std::vector<bool>({true, false, true}));
}

TEST_P(LocalTierTest, WhatARestartFoundIsToldWhenItIsUsed) {
  const auto pool = MakePool(GetParam());
  Open(*pool)->Store(kNs, Hashes(0, 3), 0, first_, Confirm);
  const auto tier = Open(*pool);
  tier->FollowChanges();
  EXPECT_TRUE(tier->TakeChanges().empty());
  const std::vector<Token> tokens = TokensOf(2);
  const std::vector<PageHash> hashes = Hashes(0, 2);
  tier->Tell({{}, tokens, hashes, 4});
  EXPECT_EQ(tier->TakeChanges().size(), 2u);
}

TEST_P(LocalTierTest, ChangesThatNobodyTakesAreBounded) {
  constexpr size_t kMost = 65'536;
  constexpr size_t kSlots = 100;
  constexpr size_t kPrompt = 10;
  const auto pool = MakePool(GetParam());
  auto pages = *MappedPages::Map(*pool);
  auto store =
      HostStore::Make(kSlots * pages->block_bytes(), pages->block_bytes());
  ASSERT_TRUE(store.ok());
  LocalTier tier(std::move(pages), *std::move(store));
  tier.FollowChanges();
  const std::vector<Token> tokens = TokensOf(kPrompt);
  const std::vector<PageId> from(kPrompt, PageId(1));
  const auto store_and_tell = [&](size_t first) {
    const std::vector<PageHash> hashes = Hashes(first, kPrompt);
    tier.Store(kNs, hashes, 0, from, Confirm);
    tier.Tell({{}, tokens, hashes, 4});
  };
  // Once the tier is full, each prompt takes the slots of an earlier prompt,
  // whose blocks are then gone.
  size_t next = 0;
  for (; next < kMost; next += kPrompt) store_and_tell(next);
  std::set<PageHash> known;
  const auto take = [&] {
    const std::vector<TierChange> changes = tier.TakeChanges();
    for (const TierChange& change : changes) {
      const bool is_news = change.stored.has_value()
                               ? known.insert(change.hash).second
                               : known.erase(change.hash) == 1;
      EXPECT_TRUE(is_news);
    }
    return changes.size();
  };
  const size_t told = take();
  EXPECT_GE(told, kMost);
  EXPECT_LE(told, kMost + 2 * kSlots);
  EXPECT_TRUE(known.empty());  // each reported block is gone
  // Now that the changes are taken, blocks are reported again, also those that
  // were not reported when they were stored.
  store_and_tell(next - kPrompt);
  store_and_tell(next);
  take();
  EXPECT_EQ(known.size(), 2 * kPrompt);
}

INSTANTIATE_TEST_SUITE_P(Orders, LocalTierTest,
                         testing::Values(LayoutOrder::kLayerFirst,
                                         LayoutOrder::kPageFirst));

}  // namespace
}  // namespace pando
