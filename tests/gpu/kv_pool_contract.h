// Tests the contract of every KvPool, whatever memory it is made of. A
// backend's test includes this file and instantiates KvPoolContract with its
// KvPoolBackend.
#ifndef PANDO_TESTS_GPU_KV_POOL_CONTRACT_H_
#define PANDO_TESTS_GPU_KV_POOL_CONTRACT_H_

#include <fcntl.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "gpu/kv_pool.h"
#include "gtest/gtest.h"

namespace pando {

// The functions by which a suite makes a pool and reaches its memory through
// descriptors, as another process does.
struct KvPoolBackend {
  std::string name;
  // Returns why there can be no such pool here; empty if there can.
  std::function<std::string()> why_not;
  // Returns why pages cannot be checksummed here; empty if they can.
  std::function<std::string()> why_no_checksums;
  std::function<absl::StatusOr<std::unique_ptr<KvPool>>(
      const KvShape& shape, uint32_t capacity_pages, uint32_t num_shards)>
      create;
  // Both map the descriptor's memory, write to it or read it, and unmap it.
  std::function<void(const UniqueFd& fd, uint64_t size_bytes, uint64_t offset,
                     const std::string& bytes)>
      write;
  std::function<std::string(const UniqueFd& fd, uint64_t size_bytes,
                            uint64_t offset, size_t length)>
      read;
};

// googletest calls this function for the names of the tests.
inline void PrintTo(const KvPoolBackend& backend, std::ostream* out) {
  *out << backend.name;
}

class KvPoolContract : public testing::TestWithParam<KvPoolBackend> {
 protected:
  static constexpr uint32_t kCapacity = 7;
  static constexpr uint32_t kShards = 2;

  static KvShape Shape() {
    return {.layers = 3,
            .kv_planes = 2,
            .heads = 2,
            .head_size = 24,
            .dtype = DType::kBFloat16,
            .page_tokens = 16,
            .order = LayoutOrder::kLayerFirst};
  }

  void SetUp() override {
    const std::string why_not = GetParam().why_not();
    if (!why_not.empty()) GTEST_SKIP() << why_not;
  }

  // Writes to `page`, and returns the checksums of `pages`.
  static std::vector<uint64_t> WriteAndChecksum(
      const KvPool& pool, PageChecksummer& checksummer, uint32_t shard,
      uint32_t page, const std::vector<uint32_t>& pages) {
    GetParam().write(pool.ExportShard(shard).value(),
                     pool.shards()[shard].size_bytes,
                     page * pool.layout().page_stride, "written");
    return checksummer.Checksum(pages).value();
  }

  static std::unique_ptr<KvPool> MakePool() {
    return GetParam().create(Shape(), kCapacity, kShards).value();
  }
};

TEST_P(KvPoolContract, DescribesShardsLargeEnoughForEveryPage) {
  const std::unique_ptr<KvPool> pool = MakePool();
  EXPECT_EQ(pool->capacity_pages(), kCapacity);
  ASSERT_EQ(pool->shards().size(), kShards);
  for (uint32_t index = 0; index < kShards; ++index) {
    const KvShard& shard = pool->shards()[index];
    EXPECT_EQ(shard.index, index);
    EXPECT_FALSE(shard.device.empty());
    EXPECT_GE(shard.size_bytes, PoolBytes(pool->layout(), kCapacity));
  }
}

TEST_P(KvPoolContract, BytesWrittenThroughOneExportAreReadThroughAnother) {
  const std::unique_ptr<KvPool> pool = MakePool();
  const uint64_t size = pool->shards()[0].size_bytes;
  const uint64_t last_page =
      PoolBytes(pool->layout(), kCapacity) - pool->layout().page_stride;
  const UniqueFd writer = pool->ExportShard(0).value();
  const UniqueFd reader = pool->ExportShard(0).value();
  GetParam().write(writer, size, 0, "first page");
  GetParam().write(writer, size, last_page, "last page");
  EXPECT_EQ(GetParam().read(reader, size, 0, 10), "first page");
  EXPECT_EQ(GetParam().read(reader, size, last_page, 9), "last page");
}

TEST_P(KvPoolContract, ShardsAreDistinctMemory) {
  const std::unique_ptr<KvPool> pool = MakePool();
  for (const KvShard& shard : pool->shards()) {
    GetParam().write(pool->ExportShard(shard.index).value(), shard.size_bytes,
                     0, "shard " + std::to_string(shard.index));
  }
  for (const KvShard& shard : pool->shards()) {
    EXPECT_EQ(GetParam().read(pool->ExportShard(shard.index).value(),
                              shard.size_bytes, 0, 7),
              "shard " + std::to_string(shard.index));
  }
}

TEST_P(KvPoolContract, EachExportIsANewDescriptorClosedOnExec) {
  const std::unique_ptr<KvPool> pool = MakePool();
  const UniqueFd one = pool->ExportShard(0).value();
  const UniqueFd other = pool->ExportShard(0).value();
  EXPECT_NE(one.get(), other.get());
  EXPECT_TRUE(fcntl(one.get(), F_GETFD) & FD_CLOEXEC);
}

TEST_P(KvPoolContract, AnExportOutlivesThePool) {
  std::unique_ptr<KvPool> pool = MakePool();
  const uint64_t size = pool->shards()[0].size_bytes;
  const UniqueFd fd = pool->ExportShard(0).value();
  GetParam().write(fd, size, 0, "kept");
  pool.reset();
  EXPECT_EQ(GetParam().read(fd, size, 0, 4), "kept");
}

TEST_P(KvPoolContract, ChecksumsOfPagesFollowWhatIsWrittenToAnyShard) {
  const std::string why_not = GetParam().why_no_checksums();
  if (!why_not.empty()) GTEST_SKIP() << why_not;
  const std::unique_ptr<KvPool> pool = MakePool();
  const std::unique_ptr<PageChecksummer> checksummer =
      pool->MakeChecksummer().value();
  const std::vector<uint32_t> pages = {3, 1, 2};
  std::vector<uint64_t> before = checksummer->Checksum(pages).value();
  for (const KvShard& shard : pool->shards()) {
    const std::vector<uint64_t> written =
        WriteAndChecksum(*pool, *checksummer, shard.index, 1, pages);
    EXPECT_EQ(written[0], before[0]);
    EXPECT_NE(written[1], before[1]);
    EXPECT_EQ(written[2], before[2]);
    before = written;
  }
  EXPECT_EQ(checksummer->Checksum(pages).value(), before);
  EXPECT_TRUE(checksummer->Checksum({}).value().empty());
}

TEST_P(KvPoolContract, RefusesToExportAShardItDoesNotHave) {
  const std::unique_ptr<KvPool> pool = MakePool();
  const absl::Status status = pool->ExportShard(kShards).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(status.message(), "shard is 2; the pool has 2 shards");
}

TEST_P(KvPoolContract, RefusesAnInvalidShape) {
  KvShape shape = Shape();
  shape.heads = 0;
  EXPECT_EQ(GetParam().create(shape, kCapacity, 1).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_P(KvPoolContract, RefusesToHaveNoShard) {
  EXPECT_EQ(GetParam().create(Shape(), kCapacity, 0).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_P(KvPoolContract, SaysSoWhenThereIsNotEnoughMemory) {
  EXPECT_EQ(GetParam().create(Shape(), 4294967295, 250).status().code(),
            absl::StatusCode::kResourceExhausted);
}

}  // namespace pando

#endif  // PANDO_TESTS_GPU_KV_POOL_CONTRACT_H_
