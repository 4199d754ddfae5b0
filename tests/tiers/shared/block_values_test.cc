#include "tiers/shared/block_values.h"

#include <algorithm>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "gpu/host_kv_pool.h"
#include "gtest/gtest.h"
#include "tests/tiers/hashes.h"
#include "tiers/copying/mapped_pages.h"

namespace pando {
namespace {

constexpr uint64_t kDigest = 11;
constexpr size_t kHeaderBytes = 64;

std::unique_ptr<SharedKey> KeyOf(const std::string& secret) {
  return std::make_unique<SharedKey>(std::as_bytes(std::span(secret)));
}

class BlockValuesTest : public testing::Test {
 protected:
  BlockValuesTest()
      : pool_(*HostKvPool::Create({.layers = 3,
                                   .kv_planes = 2,
                                   .heads = 2,
                                   .head_size = 24,
                                   .dtype = DType::kFloat32,
                                   .page_tokens = 4,
                                   .order = LayoutOrder::kLayerFirst},
                                  2, 2)) {
    const auto pages = MappedPages::Map(*pool_);
    std::vector<std::byte> block((*pages)->block_bytes());
    for (std::byte& byte : block) byte = static_cast<std::byte>(random_());
    EXPECT_TRUE((*pages)->CopyIn(block.data(), PageId(0)).ok());
  }

  BlockValues Values(std::unique_ptr<SharedKey> key) {
    return BlockValues(*MappedPages::Map(*pool_), kDigest, std::move(key));
  }
  // Returns the sealed value of the first page.
  static std::vector<std::byte> Sealed(const BlockValues& values) {
    std::vector<std::byte> value(values.value_bytes());
    EXPECT_TRUE(values.CopyOut(PageId(0), value).ok());
    values.Seal(HashOf(1), value);
    return value;
  }

  const std::unique_ptr<HostKvPool> pool_;
  const uint32_t seed_ = std::random_device()();
  std::mt19937 random_{seed_};
};

TEST_F(BlockValuesTest, WhatWasSignedIsWhatItWas) {
  const BlockValues one = Values(KeyOf("secret"));
  const std::vector<std::byte> value = Sealed(one);
  const BlockValues other = Values(KeyOf("secret"));
  EXPECT_TRUE(other.Verify(HashOf(1), value).ok());
  EXPECT_TRUE(other.CopyIn(value, PageId(1)).ok());
  std::vector<std::byte> copy(other.value_bytes());
  EXPECT_TRUE(other.CopyOut(PageId(1), copy).ok());
  other.Seal(HashOf(1), copy);
  EXPECT_EQ(copy, value);
}

TEST_F(BlockValuesTest, AnyBitOfASignedBlockThatIsFlippedIsALoss) {
  SCOPED_TRACE(seed_);
  const BlockValues values = Values(KeyOf("secret"));
  std::vector<std::byte> value = Sealed(values);
  const auto expect_loss_at = [&](size_t place) {
    const auto bit = static_cast<std::byte>(1u << random_() % 8);
    value[place] ^= bit;
    EXPECT_TRUE(absl::IsDataLoss(values.Verify(HashOf(1), value))) << place;
    value[place] ^= bit;
  };
  const size_t front = values.value_bytes() - values.page_bytes();
  for (size_t place = 0; place < front; ++place) expect_loss_at(place);
  for (int i = 0; i < 200; ++i) {
    expect_loss_at(front + random_() % values.page_bytes());
  }
  EXPECT_TRUE(values.Verify(HashOf(1), value).ok());
  EXPECT_TRUE(absl::IsDataLoss(values.Verify(HashOf(2), value)));
}

TEST_F(BlockValuesTest, WhatWasSignedWithAnotherKeyIsALoss) {
  const std::vector<std::byte> value = Sealed(Values(KeyOf("another secret")));
  EXPECT_TRUE(
      absl::IsDataLoss(Values(KeyOf("secret")).Verify(HashOf(1), value)));
}

TEST_F(BlockValuesTest, ARightChecksumIsNoSignature) {
  const BlockValues values = Values(KeyOf("secret"));
  const std::vector<std::byte> forged = Sealed(Values(nullptr));
  for (const std::byte filling : {std::byte{0}, std::byte{0xff}}) {
    std::vector<std::byte> value(values.value_bytes(), filling);
    std::ranges::copy(std::span(forged).first(kHeaderBytes), value.begin());
    std::ranges::copy(
        std::span(forged).subspan(kHeaderBytes),
        value.end() - static_cast<std::ptrdiff_t>(values.page_bytes()));
    EXPECT_TRUE(absl::IsDataLoss(values.Verify(HashOf(1), value)));
  }
}

TEST_F(BlockValuesTest, WithoutAKeyAChecksumIsEnough) {
  const BlockValues values = Values(nullptr);
  std::vector<std::byte> value = Sealed(values);
  EXPECT_EQ(value.size(), kHeaderBytes + values.page_bytes());
  EXPECT_TRUE(values.Verify(HashOf(1), value).ok());
  value.back() ^= std::byte{1};
  EXPECT_TRUE(absl::IsDataLoss(values.Verify(HashOf(1), value)));
}

}  // namespace
}  // namespace pando
