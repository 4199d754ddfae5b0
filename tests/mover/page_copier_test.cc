// Compares the mover's copies of pages in host memory with those of
// gpu/page_copy.
#include "mover/page_copier.h"

#include <sys/mman.h>

#include <memory>
#include <random>
#include <vector>

#include "gpu/host_kv_pool.h"
#include "gpu/page_copy.h"
#include "gtest/gtest.h"
#include "mover/mapped_file.h"

namespace pando::mover {
namespace {

constexpr uint32_t kPages = 7;
constexpr uint32_t kShards = 3;
constexpr uint64_t kTransferBytes = uint64_t{1} << 20;

class HostPageCopies : public testing::TestWithParam<LayoutOrder> {
 protected:
  void SetUp() override {
    pool_ = HostKvPool::Create({.layers = 3,
                                .kv_planes = 2,
                                .heads = 2,
                                .head_size = 5,
                                .dtype = DType::kFloat32,
                                .page_tokens = 4,
                                .order = GetParam()},
                               kPages, kShards)
                .value();
    const KvLayout& layout = pool_->layout();
    welcome_.capacity_pages = kPages;
    welcome_.geometry = {.pieces = uint64_t{layout.layers} * layout.kv_planes,
                         .page_stride = layout.page_stride,
                         .piece_stride = layout.kv_stride,
                         .piece_bytes = layout.piece_bytes};
    welcome_.shard_bytes = pool_->shards().front().size_bytes;
    welcome_.transfer_bytes = kTransferBytes;
    // The copier gets two of the three shards, as if the third one were on
    // another device.
    welcome_.num_shards = 2;
    welcome_.shards[0] = 2;
    welcome_.shards[1] = 0;
    fds_.emplace_back(memfd_create("transfers", MFD_CLOEXEC));
    ASSERT_EQ(ftruncate(fds_.front().get(), kTransferBytes), 0);
    for (const uint32_t shard : {2, 0}) {
      fds_.push_back(pool_->ExportShard(shard).value());
      memory_.push_back(
          MappedFile::Map(fds_.back(), welcome_.shard_bytes).value());
    }
    transfers_ = std::make_unique<MappedFile>(
        MappedFile::Map(fds_.front(), kTransferBytes).value());
  }

  std::byte* block(uint64_t offset) const {
    return transfers_->bytes().data() + offset;
  }

  std::unique_ptr<HostKvPool> pool_;
  Welcome welcome_;
  std::vector<UniqueFd> fds_;
  std::vector<MappedFile> memory_;
  std::unique_ptr<MappedFile> transfers_;
};

TEST_P(HostPageCopies, AreThoseOfThePoolsLayout) {
  std::mt19937 random(1);
  for (const MappedFile& shard : memory_) {
    for (std::byte& byte : shard.bytes()) byte = std::byte(random());
  }
  const auto copier = MakePageCopier("host", welcome_, fds_).value();
  const uint64_t part = PageBytes(pool_->layout());
  std::vector<std::byte> expected(part);
  for (uint32_t page = 0; page < kPages; ++page) {
    const uint64_t offset = page * kShards * part;
    ASSERT_TRUE(copier->Begin({.block = offset, .page = page}).ok());
    for (size_t nth = 0; nth < 2; ++nth) {
      const PageMemory pages = {.layout = pool_->layout(),
                                .base = memory_[nth].bytes().data(),
                                .ids = &page};
      ASSERT_TRUE(CopyPagesOnHost(
                      pages, PageBuffer(pool_->layout(), expected.data()), 1)
                      .ok());
      const std::byte* const copied =
          block(offset + welcome_.shards[nth] * part);
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), copied));
    }
  }
}

TEST_P(HostPageCopies, ComeBackToAnotherPage) {
  const uint64_t part = PageBytes(pool_->layout());
  for (uint64_t i = 0; i < kShards * part; ++i) *block(i) = std::byte(i * 7);
  const auto copier = MakePageCopier("host", welcome_, fds_).value();
  const Order in = {.block = 0, .page = 5, .direction = Direction::kIn};
  const Order out = {.block = 1 << 16, .page = 5, .direction = Direction::kOut};
  ASSERT_TRUE(copier->Begin(in).ok());
  ASSERT_TRUE(copier->Begin(out).ok());
  for (const uint64_t shard : {0, 2}) {
    const std::byte* const there = block(shard * part);
    EXPECT_TRUE(
        std::equal(there, there + part, block((1 << 16) + shard * part)));
  }
  // The copier leaves out the part of the shard that is on the other device.
  EXPECT_EQ(*block((1 << 16) + part), std::byte{0});
}

TEST_P(HostPageCopies, AnOrderIsToldOnceAsEnded) {
  const auto copier = MakePageCopier("host", welcome_, fds_).value();
  for (const uint64_t id : {7, 8}) {
    const Order order = {.id = id, .block = 0, .page = 1};
    ASSERT_TRUE(copier->Begin(order).ok());
    ASSERT_TRUE(copier->MarkEnd(order).ok());
  }
  EXPECT_EQ(copier->TakeEnded().value(), (std::vector<uint64_t>{7, 8}));
  EXPECT_EQ(copier->TakeEnded().value(), std::vector<uint64_t>());
}

TEST_P(HostPageCopies, AnOrderThatLeadsOutOfTheMemoryIsRefused) {
  const auto copier = MakePageCopier("host", welcome_, fds_).value();
  const uint64_t bytes = kShards * PageBytes(pool_->layout());
  const std::vector<Order> wrong = {
      {.block = 0, .page = kPages},
      {.block = kTransferBytes - bytes + 1, .page = 1},
      {.block = kTransferBytes, .page = 1},
      {.block = ~uint64_t{0}, .page = 1},
      {.block = ~uint64_t{0} - bytes, .page = 1}};
  for (const Order& order : wrong) {
    EXPECT_TRUE(absl::IsInvalidArgument(copier->Begin(order)));
  }
  EXPECT_TRUE(copier->Begin({.block = kTransferBytes - bytes, .page = 1}).ok());
}

TEST_P(HostPageCopies, DescriptorsMustBeAsManyAsSaid) {
  welcome_.num_shards = 3;
  EXPECT_TRUE(
      absl::IsInvalidArgument(MakePageCopier("host", welcome_, fds_).status()));
}

INSTANTIATE_TEST_SUITE_P(Orders, HostPageCopies,
                         testing::Values(LayoutOrder::kLayerFirst,
                                         LayoutOrder::kPageFirst),
                         [](const auto& order) {
                           return order.param == LayoutOrder::kLayerFirst
                                      ? "LayerFirst"
                                      : "PageFirst";
                         });

}  // namespace
}  // namespace pando::mover
