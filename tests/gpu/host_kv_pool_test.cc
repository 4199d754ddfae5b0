#include "gpu/host_kv_pool.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/gpu/kv_pool_contract.h"

namespace pando {
namespace {

class Mapping {
 public:
  Mapping(const UniqueFd& fd, uint64_t size_bytes)
      : size_bytes_(size_bytes),
        data_(
            static_cast<char*>(mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE,
                                    MAP_SHARED, fd.get(), 0))) {
    EXPECT_NE(data_, MAP_FAILED) << std::strerror(errno);
  }
  ~Mapping() { munmap(data_, size_bytes_); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  char* data() { return data_; }

 private:
  const uint64_t size_bytes_;
  char* const data_;
};

KvPoolBackend HostBackend() {
  return {
      .name = "Host",
      .why_not = [] { return ""; },
      .why_no_checksums = [] { return ""; },
      .create = HostKvPool::Create,
      .write =
          [](const UniqueFd& fd, uint64_t size_bytes, uint64_t offset,
             const std::string& bytes) {
            Mapping mapping(fd, size_bytes);
            bytes.copy(mapping.data() + offset, bytes.size());
          },
      .read =
          [](const UniqueFd& fd, uint64_t size_bytes, uint64_t offset,
             size_t length) {
            Mapping mapping(fd, size_bytes);
            return std::string(mapping.data() + offset, length);
          },
  };
}

INSTANTIATE_TEST_SUITE_P(Host, KvPoolContract, testing::Values(HostBackend()),
                         [](const auto& param_info) {
                           return param_info.param.name;
                         });

const KvShape kShape = {.layers = 1,
                        .kv_planes = 1,
                        .heads = 1,
                        .head_size = 10,
                        .dtype = DType::kFloat32,
                        .page_tokens = 1,
                        .order = LayoutOrder::kPageFirst};

TEST(HostKvPool, ShardsAreWholeSystemPagesOfZerosThatNobodyTouched) {
  const auto pool = HostKvPool::Create(kShape, 1000, 1).value();
  const KvShard& shard = pool->shards()[0];
  EXPECT_EQ(shard.size_bytes % sysconf(_SC_PAGESIZE), 0u);
  EXPECT_EQ(shard.device, "host");

  const UniqueFd fd = pool->ExportShard(0).value();
  struct stat info;
  ASSERT_EQ(fstat(fd.get(), &info), 0);
  EXPECT_EQ(static_cast<uint64_t>(info.st_size), shard.size_bytes);
  EXPECT_EQ(info.st_blocks, 0);
  EXPECT_EQ(Mapping(fd, shard.size_bytes).data()[shard.size_bytes - 1], 0);
}

TEST(HostKvPool, AHolderCannotChangeTheSizeOfAShard) {
  const auto pool = HostKvPool::Create(kShape, 1000, 1).value();
  const auto size = static_cast<off_t>(pool->shards()[0].size_bytes);
  const UniqueFd fd = pool->ExportShard(0).value();
  EXPECT_NE(ftruncate(fd.get(), size / 2), 0);
  EXPECT_EQ(errno, EPERM);
  EXPECT_NE(ftruncate(fd.get(), size * 2), 0);
  EXPECT_EQ(errno, EPERM);
}

TEST(HostKvPool, WhatOneProcessWritesAnotherReads) {
  const auto pool = HostKvPool::Create(kShape, 1000, 1).value();
  Mapping mapping(pool->ExportShard(0).value(), pool->shards()[0].size_bytes);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::strcpy(mapping.data() + 100, "child");
    _exit(0);
  }
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_STREQ(mapping.data() + 100, "child");
}

TEST(HostKvPool, MoreThanTheMachineHasIsRefusedWithBothSizes) {
  const absl::Status status =
      HostKvPool::Create(kShape, 4294967295, 250).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()),
              testing::MatchesRegex(
                  "the pool needs 250 shards of [0-9]+ bytes; this machine "
                  "has [0-9]+ bytes of memory"));
}

}  // namespace
}  // namespace pando
