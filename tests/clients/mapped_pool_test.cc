// Tests mappings of shards, and the addresses that a head's KV has in them.
#include "pando/mapped_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.h"

namespace pando {
inline namespace client {

// A fixture that calls MappedPool::Map as a friend.
class MappedPoolTest : public testing::Test {
 protected:
  static absl::StatusOr<MappedPool> Map(
      PoolDescription pool, uint64_t epoch,
      const std::vector<UniqueFd>& descriptors,
      const std::vector<std::byte*>& wanted = {},
      const std::vector<uint32_t>& shards = {}) {
    return MappedPool::Map(std::move(pool), epoch, descriptors, shards, wanted);
  }
};

namespace {

// Returns a layout with 2 layers, 2 heads of 4 floats, and 4 pages of 16
// tokens. A head has 16 bytes, a token 32, a plane of a page 512, and a page of
// a layer 1024.
KvLayout Layout(LayoutOrder order) {
  const bool layer_first = order == LayoutOrder::kLayerFirst;
  return {.layers = 2,
          .kv_planes = 2,
          .heads = 2,
          .head_size = 4,
          .dtype = DType::kFloat32,
          .page_tokens = 16,
          .order = order,
          .layer_stride = layer_first ? 4096u : 1024u,
          .page_stride = layer_first ? 1024u : 2048u,
          .kv_stride = 512,
          .token_stride = 32,
          .head_stride = 16};
}

PoolDescription Pool(LayoutOrder order, size_t shards = 1) {
  return {.capacity_pages = 4,
          .layout = Layout(order),
          .shards = std::vector<Shard>(shards,
                                       {.device = "host", .size_bytes = 8192}),
          .model = "",
          .fingerprint = 0,
          .page_bytes = 2048};
}

std::vector<UniqueFd> Memory(size_t shards, off_t bytes = 8192) {
  std::vector<UniqueFd> descriptors;
  for (size_t i = 0; i < shards; ++i) {
    descriptors.emplace_back(memfd_create("pool", MFD_CLOEXEC));
    EXPECT_EQ(ftruncate(descriptors.back().get(), bytes), 0);
  }
  return descriptors;
}

TEST_F(MappedPoolTest, AddressesFollowTheStridesOfLayerFirst) {
  const auto pool = Map(Pool(LayoutOrder::kLayerFirst), 1, Memory(1));
  ASSERT_TRUE(pool.ok()) << pool.status();
  const std::byte* base = pool->shard(0).data();
  EXPECT_EQ(pool->KeyAddress(1, 3, 5, 1) - base, 4096 + 3 * 1024 + 5 * 32 + 16);
  EXPECT_EQ(pool->ValueAddress(1, 3, 5, 1) - base,
            4096 + 3 * 1024 + 512 + 5 * 32 + 16);
}

TEST_F(MappedPoolTest, AddressesFollowTheStridesOfPageFirst) {
  const auto pool = Map(Pool(LayoutOrder::kPageFirst), 1, Memory(1));
  ASSERT_TRUE(pool.ok()) << pool.status();
  const std::byte* base = pool->shard(0).data();
  EXPECT_EQ(pool->KeyAddress(1, 3, 5, 1) - base, 1024 + 3 * 2048 + 5 * 32 + 16);
}

TEST_F(MappedPoolTest, TheLastHeadEndsAtTheEndOfTheShard) {
  const auto pool = Map(Pool(LayoutOrder::kPageFirst), 1, Memory(1));
  ASSERT_TRUE(pool.ok()) << pool.status();
  EXPECT_EQ(pool->ValueAddress(1, 3, 15, 1) + 16,
            pool->shard(0).data() + pool->shard(0).size());
}

TEST_F(MappedPoolTest, EachShardIsItsOwnMemory) {
  const auto pool = Map(Pool(LayoutOrder::kLayerFirst, 2), 1, Memory(2));
  ASSERT_TRUE(pool.ok()) << pool.status();
  *pool->KeyAddress(0, 1, 0, 0, /*shard=*/1) = std::byte{7};
  EXPECT_EQ(*pool->KeyAddress(0, 1, 0, 0, /*shard=*/0), std::byte{0});
}

TEST_F(MappedPoolTest, MappingsOfTheSameMemoryShareItsBytes) {
  const std::vector<UniqueFd> memory = Memory(1);
  const auto a = Map(Pool(LayoutOrder::kLayerFirst), 1, memory);
  const auto b = Map(Pool(LayoutOrder::kLayerFirst), 1, memory);
  ASSERT_TRUE(a.ok() && b.ok());
  *a->KeyAddress(1, 2, 3, 0) = std::byte{42};
  EXPECT_EQ(*b->KeyAddress(1, 2, 3, 0), std::byte{42});
}

TEST_F(MappedPoolTest, AMovedPoolKeepsItsMapping) {
  auto pool = Map(Pool(LayoutOrder::kLayerFirst), 1, Memory(1));
  auto other = Map(Pool(LayoutOrder::kLayerFirst), 2, Memory(1));
  ASSERT_TRUE(pool.ok() && other.ok());
  *pool->KeyAddress(0, 1, 0, 0) = std::byte{9};
  *other = *std::move(pool);
  EXPECT_EQ(*other->KeyAddress(0, 1, 0, 0), std::byte{9});
  EXPECT_EQ(other->epoch(), 1u);
}

TEST_F(MappedPoolTest, AMappingIsMadeAtTheAddressOfOneThatIsGone) {
  const std::vector<UniqueFd> memory = Memory(2);
  std::vector<std::byte*> addresses;
  {
    const auto pool = Map(Pool(LayoutOrder::kLayerFirst, 2), 1, memory);
    ASSERT_TRUE(pool.ok()) << pool.status();
    for (uint32_t i : {0, 1}) addresses.push_back(pool->shard(i).data());
  }
  const auto again =
      Map(Pool(LayoutOrder::kLayerFirst, 2), 1, memory, addresses);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->shard(0).data(), addresses[0]);
  EXPECT_EQ(again->shard(1).data(), addresses[1]);
}

TEST_F(MappedPoolTest, AnAddressThatIsTakenIsRefused) {
  const std::vector<UniqueFd> memory = Memory(1);
  const auto pool = Map(Pool(LayoutOrder::kLayerFirst), 1, memory);
  ASSERT_TRUE(pool.ok()) << pool.status();
  const absl::Status status =
      Map(Pool(LayoutOrder::kLayerFirst), 1, memory, {pool->shard(0).data()})
          .status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              testing::MatchesRegex("shard 0: address 0x.* is not to be had"));
}

TEST_F(MappedPoolTest, OnlyTheShardsThatAreAskedForAreMapped) {
  PoolDescription pool = Pool(LayoutOrder::kLayerFirst, 3);
  pool.shards[0].device = "tape";  // a device that cannot be mapped
  const auto mapped = Map(std::move(pool), 1, Memory(3), {}, {1});
  ASSERT_TRUE(mapped.ok()) << mapped.status();
  *mapped->KeyAddress(0, 1, 0, 0, /*shard=*/1) = std::byte{7};
  EXPECT_TRUE(mapped->shard(0).empty());
  EXPECT_TRUE(mapped->shard(2).empty());
}

TEST_F(MappedPoolTest, AShardThatThePoolHasNotIsRefused) {
  EXPECT_EQ(Map(Pool(LayoutOrder::kLayerFirst, 2), 1, Memory(2), {}, {2})
                .status()
                .message(),
            "shards has 2; the pool has 2 shards, which are counted from 0");
}

TEST_F(MappedPoolTest, AGpuThatIsNotThereIsAnErrorThatNamesTheShard) {
  PoolDescription pool = Pool(LayoutOrder::kLayerFirst);
  pool.shards[0].device = "cuda:00000000-0000-0000-0000-000000000000";
  const absl::Status status = Map(std::move(pool), 1, Memory(1)).status();
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()),
              testing::ContainsRegex("shard 0: .*(CUDA|no GPU)"));
}

TEST_F(MappedPoolTest, MemoryOfAnUnknownKindIsRefused) {
  PoolDescription pool = Pool(LayoutOrder::kLayerFirst);
  pool.shards[0].device = "tape";
  EXPECT_EQ(Map(std::move(pool), 1, Memory(1)).status().message(),
            "shard 0: memory on 'tape', which this client does not know");
}

TEST_F(MappedPoolTest, MemoryShorterThanTheShardIsRefused) {
  EXPECT_TRUE(absl::IsFailedPrecondition(
      Map(Pool(LayoutOrder::kLayerFirst), 1, Memory(1, 8191)).status()));
}

TEST_F(MappedPoolTest, ADescriptorForEachShardIsNeeded) {
  EXPECT_TRUE(absl::IsFailedPrecondition(
      Map(Pool(LayoutOrder::kLayerFirst, 2), 1, Memory(1)).status()));
}

}  // namespace
}  // namespace client
}  // namespace pando
