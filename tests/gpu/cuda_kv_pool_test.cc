// Tests CUDA pools on the first GPU or on the stand-in for the driver
// (tests/support/cuda_stand_in). This source is built once for each.
#include "gpu/cuda_kv_pool.h"

#include <memory>
#include <string>
#include <vector>

#include "cuda/memory.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/gpu/cuda_device.h"
#include "tests/gpu/device_access.h"
#include "tests/gpu/kv_pool_contract.h"

namespace pando {
namespace {

const KvShape kShape = {.layers = 1,
                        .kv_planes = 1,
                        .heads = 1,
                        .head_size = 10,
                        .dtype = DType::kFloat32,
                        .page_tokens = 1,
                        .order = LayoutOrder::kPageFirst};

cuda::Mapping Map(const UniqueFd& fd, uint64_t size_bytes) {
  const cuda::Device device = cuda::FindDevice("0").value();
  return cuda::Mapping::Map(
             cuda::Memory::Import(device, fd.get(), size_bytes).value())
      .value();
}

KvPoolBackend CudaBackend() {
  return {
      .name = "Cuda",
      .why_not = WhyNoDevice,
      .why_no_checksums = WhyNoKernels,
      .create =
          [](const KvShape& shape, uint32_t capacity_pages,
             uint32_t num_shards) -> absl::StatusOr<std::unique_ptr<KvPool>> {
        return CudaKvPool::Create(shape, capacity_pages,
                                  std::vector<std::string>(num_shards, "0"));
      },
      .write =
          [](const UniqueFd& fd, uint64_t size_bytes, uint64_t offset,
             const std::string& bytes) {
            const cuda::Mapping mapping = Map(fd, size_bytes);
            CopyToDevice(mapping.bytes().data() + offset, bytes.data(),
                         bytes.size());
          },
      .read =
          [](const UniqueFd& fd, uint64_t size_bytes, uint64_t offset,
             size_t length) {
            const cuda::Mapping mapping = Map(fd, size_bytes);
            std::string bytes(length, '\0');
            CopyFromDevice(bytes.data(), mapping.bytes().data() + offset,
                           length);
            return bytes;
          },
  };
}

INSTANTIATE_TEST_SUITE_P(Cuda, KvPoolContract, testing::Values(CudaBackend()),
                         [](const auto& param_info) {
                           return param_info.param.name;
                         });

class CudaKvPoolTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string why_not = WhyNoDevice();
    if (!why_not.empty()) GTEST_SKIP() << why_not;
  }
};

TEST_F(CudaKvPoolTest, ADeviceIsNamedByOrdinalOrUuid) {
  const cuda::Device device = cuda::FindDevice("0").value();
  for (const std::string& name :
       {device.uuid, "GPU-" + device.uuid, std::string("0")}) {
    const auto pool = CudaKvPool::Create(kShape, 10, {name}).value();
    EXPECT_EQ(pool->shards()[0].device, "cuda:" + device.uuid);
  }
}

TEST_F(CudaKvPoolTest, AnUnknownDeviceIsAnErrorThatNamesTheKnownOnes) {
  const absl::Status status = CudaKvPool::Create(kShape, 10, {"99"}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()),
              testing::StartsWith("no GPU is '99'; there are: 0 GPU-"));
}

TEST_F(CudaKvPoolTest, MemoryIsZeroAtBothEnds) {
  const auto pool = CudaKvPool::Create(kShape, 1000, {"0"}).value();
  const uint64_t size = pool->shards()[0].size_bytes;
  const cuda::Mapping mapping = Map(pool->ExportShard(0).value(), size);
  for (uint64_t offset : {uint64_t{0}, size - 1}) {
    char byte = 1;
    CopyFromDevice(&byte, mapping.bytes().data() + offset, 1);
    EXPECT_EQ(byte, 0);
  }
}

TEST_F(CudaKvPoolTest, AMappingMayBeMadeAtTheAddressOfAnEarlierOne) {
  const auto pool = CudaKvPool::Create(kShape, 1000, {"0"}).value();
  const cuda::Device device = cuda::FindDevice("0").value();
  const cuda::Memory memory =
      cuda::Memory::Import(device, pool->ExportShard(0).value().get(),
                           pool->shards()[0].size_bytes)
          .value();
  std::byte* const before = cuda::Mapping::Map(memory).value().bytes().data();
  EXPECT_EQ(cuda::Mapping::Map(memory, before).value().bytes().data(), before);
}

TEST_F(CudaKvPoolTest, AThousandMappingsLeaveNoMemoryTaken) {
  const auto pool = CudaKvPool::Create(kShape, 1000, {"0"}).value();
  const uint64_t size = pool->shards()[0].size_bytes;
  // The first mapping, and the context that it makes, take memory and stay.
  const cuda::Mapping kept = Map(pool->ExportShard(0).value(), size);
  const cuda::Device device = cuda::FindDevice("0").value();
  const uint64_t before = cuda::FreeBytes(device).value();
  for (int i = 0; i < 1000; ++i) Map(pool->ExportShard(0).value(), size);
  EXPECT_EQ(cuda::FreeBytes(device).value(), before);
}

}  // namespace
}  // namespace pando
