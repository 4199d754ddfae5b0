// Tests pools without the CUDA toolkit, a driver or a device.
#include <string>

#include "gmock/gmock.h"
#include "gpu/cuda_kv_pool.h"
#include "gtest/gtest.h"
#include "tests/gpu/cuda_device.h"

namespace pando {
namespace {

const KvShape kShape = {.layers = 1,
                        .kv_planes = 1,
                        .heads = 1,
                        .head_size = 10,
                        .dtype = DType::kFloat32,
                        .page_tokens = 1,
                        .order = LayoutOrder::kPageFirst};

TEST(CudaMissing, APoolOnAGpuIsRefusedWithTheReason) {
  if (WhyNoDevice().empty()) GTEST_SKIP() << "there is a device";
  const absl::Status status = CudaKvPool::Create(kShape, 10, {"0"}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("CUDA"));
  EXPECT_EQ(FreeBytesPerShard({"0"}).status(), status);
}

TEST(CudaMissing, WrongArgumentsAreSaidFirst) {
  EXPECT_EQ(CudaKvPool::Create(kShape, 1, {"0"}).status().message(),
            "capacity_pages is 1; must be from 2 to 4294967295");
  EXPECT_EQ(CudaKvPool::Create(kShape, 10, {}).status().message(),
            "shards is 0; must be from 1 to 250");
}

}  // namespace
}  // namespace pando
