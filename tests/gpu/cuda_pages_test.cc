// Compares the CUDA kernels with their CPU forms, which other tests compare
// with a model.
#include <algorithm>
#include <vector>

#include "gpu/page_checksum.h"
#include "gpu/page_copy.h"
#include "gpu/page_staging.h"
#include "gtest/gtest.h"
#include "tests/gpu/cuda_device.h"
#include "tests/gpu/device_memory.h"
#include "tests/gpu/random_pages.h"

namespace pando {
namespace {

constexpr uint64_t kSeeds = 60;

class CudaPagesTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string why_not = WhyNoDevice();
    if (!why_not.empty()) GTEST_SKIP() << why_not;
    ASSERT_EQ(cudaStreamCreate(&stream_), cudaSuccess);
  }
  void TearDown() override {
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }

  // Records what `work` does on the stream as a graph, and runs the graph once.
  template <typename Work>
  void RunAsGraph(const Work& work) {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t runnable = nullptr;
    ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal),
              cudaSuccess);
    work();
    ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
    ASSERT_EQ(cudaGraphInstantiate(&runnable, graph, 0), cudaSuccess);
    ASSERT_EQ(cudaGraphLaunch(runnable, stream_), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    cudaGraphExecDestroy(runnable);
    cudaGraphDestroy(graph);
  }

  cudaStream_t stream_ = nullptr;
};

TEST_F(CudaPagesTest, TheCopyMovesWhatTheCpuMoves) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    RandomPages random(seed);
    KvShape shape = random.Shape();
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << shape);
    const uint32_t capacity = random.Between(2, 9);
    const uint32_t to_capacity = random.Between(2, 9);
    const KvLayout from = MakeKvLayout(shape, capacity).value();
    shape.order = random.Order();
    const KvLayout to = MakeKvLayout(shape, to_capacity).value();
    std::vector<std::byte> source = random.Bytes(PoolBytes(from, capacity));
    std::vector<std::byte> target = random.Bytes(PoolBytes(to, to_capacity));
    const std::vector<uint32_t> ids = random.Ids(capacity);
    const std::vector<uint32_t> to_ids = random.Ids(to_capacity);
    const auto pages =
        static_cast<uint32_t>(std::min(ids.size(), to_ids.size()));

    DeviceArray<std::byte> device_source(source);
    DeviceArray<std::byte> device_target(target);
    DeviceArray<uint32_t> device_ids(ids);
    DeviceArray<uint32_t> device_to_ids(to_ids);
    ASSERT_TRUE(CopyPages({from, device_source.data(), device_ids.data()},
                          {to, device_target.data(), device_to_ids.data()},
                          pages, stream_)
                    .ok());
    ASSERT_TRUE(CopyPagesOnHost({from, source.data(), ids.data()},
                                {to, target.data(), to_ids.data()}, pages)
                    .ok());
    EXPECT_TRUE(device_target.values() == target);
  }
}

TEST_F(CudaPagesTest, TheChecksumIsThatOfTheCpu) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    RandomPages random(seed);
    const KvShape shape = random.Shape();
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << shape);
    const uint32_t capacity = random.Between(2, 9);
    const KvLayout layout = MakeKvLayout(shape, capacity).value();
    std::vector<std::byte> pool = random.Bytes(PoolBytes(layout, capacity));
    std::vector<uint64_t> expected(capacity);
    ChecksumPagesOnHost({.layout = layout, .base = pool.data()}, capacity,
                        expected.data());
    DeviceArray<std::byte> device_pool(pool);
    DeviceArray<uint64_t> checksums(capacity);
    ASSERT_TRUE(ChecksumPages({.layout = layout, .base = device_pool.data()},
                              capacity, checksums.data(), stream_)
                    .ok());
    EXPECT_EQ(checksums.values(), expected);
  }
}

TEST_F(CudaPagesTest, StagingTakesPagesToTheHostAndBack) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    RandomPages random(seed);
    const KvShape shape = random.Shape();
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << shape);
    const uint32_t capacity = random.Between(2, 30);
    const KvLayout layout = MakeKvLayout(shape, capacity).value();
    std::vector<std::byte> pool = random.Bytes(PoolBytes(layout, capacity));
    const std::vector<uint32_t> ids = random.Ids(capacity);
    const auto pages = static_cast<uint32_t>(ids.size());
    std::vector<std::byte> expected(pages * PageBytes(layout));
    ASSERT_TRUE(CopyPagesOnHost({layout, pool.data(), ids.data()},
                                PageBuffer(layout, expected.data()), pages)
                    .ok());

    DeviceArray<std::byte> device_pool(pool);
    DeviceArray<uint32_t> device_ids(ids);
    const PageMemory on_device = {layout, device_pool.data(),
                                  device_ids.data()};
    PinnedBytes host(expected.size());
    const auto staging =
        PageStaging::Create(layout, random.Between(1, 7)).value();
    ASSERT_TRUE(staging->ToHost(on_device, pages, host.data(), stream_).ok());
    ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), host.data()));

    std::reverse(host.data(), host.data() + expected.size());
    std::reverse(expected.begin(), expected.end());
    ASSERT_TRUE(staging->ToDevice(host.data(), on_device, pages, stream_).ok());
    ASSERT_TRUE(CopyPagesOnHost(PageBuffer(layout, expected.data()),
                                {layout, pool.data(), ids.data()}, pages)
                    .ok());
    EXPECT_TRUE(device_pool.values() == pool);
  }
}

TEST_F(CudaPagesTest, AllOfItMayBePartOfAGraph) {
  RandomPages random(1);
  const KvShape shape = random.Shape();
  const KvLayout layout = MakeKvLayout(shape, 20).value();
  std::vector<std::byte> pool = random.Bytes(PoolBytes(layout, 20));
  std::vector<uint64_t> expected(20);
  ChecksumPagesOnHost({.layout = layout, .base = pool.data()}, 20,
                      expected.data());
  DeviceArray<std::byte> from(pool);
  DeviceArray<std::byte> to(pool.size());
  DeviceArray<uint64_t> checksums(20);
  PinnedBytes host(pool.size());
  const auto staging = PageStaging::Create(layout, 3).value();
  const PageMemory target = {.layout = layout, .base = to.data()};
  RunAsGraph([&] {
    ASSERT_TRUE(staging
                    ->ToHost({.layout = layout, .base = from.data()}, 20,
                             host.data(), stream_)
                    .ok());
    ASSERT_TRUE(staging->ToDevice(host.data(), target, 20, stream_).ok());
    ASSERT_TRUE(ChecksumPages(target, 20, checksums.data(), stream_).ok());
  });
  EXPECT_EQ(checksums.values(), expected);
}

}  // namespace
}  // namespace pando
