// Tests a CUDA pool when calls of the driver fail, on the stand-in for the
// driver. No GPU is visible here.
#include <cuda.h>
#include <dlfcn.h>
#include <sys/mman.h>

#include <ostream>
#include <string>
#include <vector>

#include "cuda/memory.h"
#include "cuda/transfers.h"
#include "gmock/gmock.h"
#include "gpu/cuda_kv_pool.h"
#include "gtest/gtest.h"
#include "tests/support/cuda_stand_in/control.h"

bool operator==(const CudaStandInHeld& a, const CudaStandInHeld& b) {
  return a.devices == b.devices && a.contexts == b.contexts &&
         a.handles == b.handles && a.reservations == b.reservations &&
         a.mappings == b.mappings && a.pinned == b.pinned &&
         a.streams == b.streams;
}

void PrintTo(const CudaStandInHeld& held, std::ostream* out) {
  *out << held.devices << " devices, " << held.contexts << " contexts, "
       << held.handles << " handles, " << held.reservations << " reservations, "
       << held.mappings << " mappings, " << held.pinned << " pinned, "
       << held.streams << " streams, " << held.events << " events";
}

namespace pando {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

const KvShape kShape = {.layers = 1,
                        .kv_planes = 1,
                        .heads = 1,
                        .head_size = 10,
                        .dtype = DType::kFloat32,
                        .page_tokens = 1,
                        .order = LayoutOrder::kPageFirst};
constexpr CudaStandInHeld kNothing = {};

class CudaStandInFaults : public testing::Test {
 protected:
  void TearDown() override {
    for (const std::string& function : failing_) {
      Control<decltype(CudaStandInFail)>("CudaStandInFail")(function.c_str(), 0,
                                                            0);
    }
    EXPECT_EQ(Held(), kNothing);
  }

  void Fail(const std::string& function, int result, int only_call = 0) {
    Control<decltype(CudaStandInFail)>("CudaStandInFail")(function.c_str(),
                                                          result, only_call);
    failing_.push_back(function);
  }

  static CudaStandInHeld Held() {
    return Control<decltype(CudaStandInCount)>("CudaStandInCount")();
  }

  static bool MayWrite(const cuda::Mapping& mapping, int device) {
    return Control<decltype(CudaStandInMayWrite)>("CudaStandInMayWrite")(
        reinterpret_cast<uintptr_t>(mapping.bytes().data()), device);
  }

  static auto Create(const std::vector<std::string>& devices = {"0"}) {
    return CudaKvPool::Create(kShape, 1000, devices);
  }

  static std::string MessageOf(const absl::Status& status) {
    return std::string(status.message());
  }

 private:
  template <typename Function>
  static Function* Control(const char* name) {
    void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
    return reinterpret_cast<Function*>(dlsym(driver, name));
  }

  std::vector<std::string> failing_;
};

class CudaStandInFaultInEachCall
    : public CudaStandInFaults,
      public testing::WithParamInterface<const char*> {};

TEST_P(CudaStandInFaultInEachCall, OfCreationIsSaidAndNothingIsKept) {
  Fail(GetParam(), CUDA_ERROR_NOT_PERMITTED);
  const absl::Status status = Create().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(
      MessageOf(status),
      AllOf(HasSubstr(GetParam()),
            HasSubstr(
                "operation not permitted (CUDA_ERROR_NOT_PERMITTED, 800)")));
}

INSTANTIATE_TEST_SUITE_P(
    All, CudaStandInFaultInEachCall,
    testing::Values("cuDeviceGetCount", "cuDeviceGetUuid", "cuDeviceTotalMem",
                    "cuDeviceGetAttribute", "cuMemGetAllocationGranularity",
                    "cuMemCreate", "cuDevicePrimaryCtxRetain",
                    "cuDeviceCanAccessPeer", "cuCtxPushCurrent",
                    "cuMemAddressReserve", "cuMemMap", "cuMemSetAccess",
                    "cuMemsetD8", "cuCtxSynchronize"),
    [](const auto& param_info) { return std::string(param_info.param); });

class CudaStandInFaultInTransfers
    : public CudaStandInFaults,
      public testing::WithParamInterface<const char*> {};

TEST_P(CudaStandInFaultInTransfers, IsSaidAndNothingIsKept) {
  const cuda::Device device = cuda::FindDevice("0").value();
  std::vector<std::byte> host(1 << 20);
  Fail(GetParam(), CUDA_ERROR_NOT_PERMITTED);
  EXPECT_THAT(MessageOf(cuda::Transfers::Make(device, host).status()),
              HasSubstr(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(All, CudaStandInFaultInTransfers,
                         testing::Values("cuDevicePrimaryCtxRetain",
                                         "cuCtxPushCurrent",
                                         "cuDeviceGetAttribute",
                                         "cuMemHostRegister", "cuStreamCreate"),
                         [](const auto& param_info) {
                           return std::string(param_info.param);
                         });

TEST_F(CudaStandInFaults, CopiesAreThereWhenTheirEndIsReached) {
  const cuda::Device device = cuda::FindDevice("0").value();
  const auto pool = Create().value();
  const auto memory = cuda::Memory::Import(
      device, pool->ExportShard(0).value().get(), pool->shards()[0].size_bytes);
  const auto mapping = cuda::Mapping::Map(memory.value()).value();
  std::vector<std::byte> host(8 * 100, std::byte{7});
  const auto transfers = cuda::Transfers::Make(device, host).value();
  const cuda::Transfers::Rows rows = {.device = mapping.bytes().data(),
                                      .device_pitch = 1000,
                                      .host = host.data(),
                                      .row_bytes = 100,
                                      .count = 8};
  const auto copy = [&](cuda::Transfers::Direction direction) {
    ASSERT_TRUE(transfers->Begin(rows, direction).ok());
    ASSERT_TRUE(transfers->MarkEnd(direction, 42).ok());
    EXPECT_THAT(transfers->TakeReached().value(), testing::IsEmpty());
    EXPECT_THAT(transfers->TakeReached().value(), testing::ElementsAre(42));
  };
  copy(cuda::Transfers::Direction::kToDevice);
  std::fill(host.begin(), host.end(), std::byte{0});
  copy(cuda::Transfers::Direction::kFromDevice);
  EXPECT_THAT(host, testing::Each(std::byte{7}));
  EXPECT_EQ(mapping.bytes()[100], std::byte{0});  // between two rows
}

TEST_F(CudaStandInFaults, AShardThatCannotBeMadeTakesThoseBeforeItDown) {
  Fail("cuMemCreate", CUDA_ERROR_OUT_OF_MEMORY, /*only_call=*/2);
  const absl::Status status = Create({"0", "1"}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(MessageOf(status),
              AllOf(StartsWith("GPU 1 ("),
                    HasSubstr("cuMemCreate of 2097152 bytes: out of memory "
                              "(CUDA_ERROR_OUT_OF_MEMORY, 2)")));
}

TEST_F(CudaStandInFaults, AnErrorThatTheDriverHasNoWordsForIsANumber) {
  Fail("cuMemCreate", 4242);
  const absl::Status status = Create().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(MessageOf(status),
              HasSubstr("error 4242, which it has no words for"));
}

TEST_F(CudaStandInFaults, AnExportThatFailsIsSaidAndMayBeTriedAgain) {
  const auto pool = Create().value();
  Fail("cuMemExportToShareableHandle", CUDA_ERROR_OPERATING_SYSTEM, 1);
  EXPECT_THAT(MessageOf(pool->ExportShard(0).status()),
              HasSubstr("cuMemExportToShareableHandle: OS call failed"));
  EXPECT_TRUE(pool->ExportShard(0).ok());
}

TEST_F(CudaStandInFaults, ADescriptorOfSomethingElseIsNotImported) {
  const UniqueFd file(memfd_create("file", MFD_CLOEXEC));
  const absl::Status status =
      cuda::Memory::Import(cuda::FindDevice("0").value(), file.get(), 2097152)
          .status();
  EXPECT_THAT(MessageOf(status),
              HasSubstr("cuMemImportFromShareableHandle: invalid argument"));
}

TEST_F(CudaStandInFaults, MemoryIsNotMappedBeyondItsEnd) {
  const auto pool = Create().value();
  const auto memory = cuda::Memory::Import(
      cuda::FindDevice("0").value(), pool->ExportShard(0).value().get(),
      pool->shards()[0].size_bytes + 2097152);
  EXPECT_THAT(MessageOf(cuda::Mapping::Map(memory.value()).status()),
              HasSubstr("cuMemMap: invalid argument"));
}

TEST_F(CudaStandInFaults, AMappingAtAnotherAddressThanTheWantedIsRefused) {
  const auto pool = Create().value();
  const auto memory = cuda::Memory::Import(cuda::FindDevice("0").value(),
                                           pool->ExportShard(0).value().get(),
                                           pool->shards()[0].size_bytes);
  const auto one = cuda::Mapping::Map(memory.value()).value();
  const CudaStandInHeld before = Held();
  const absl::Status status =
      cuda::Mapping::Map(memory.value(), one.bytes().data()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(MessageOf(status),
              testing::MatchesRegex("GPU 0 \\(.*\\): address 0x.* is not to be "
                                    "had; the driver gives 0x.* instead"));
  EXPECT_EQ(Held(), before);
}

TEST_F(CudaStandInFaults, AMappingIsReachedFromEachDeviceThatIsAPeer) {
  const auto pool = Create().value();
  const auto memory = cuda::Memory::Import(cuda::FindDevice("0").value(),
                                           pool->ExportShard(0).value().get(),
                                           pool->shards()[0].size_bytes);
  const auto mapping = cuda::Mapping::Map(memory.value()).value();
  EXPECT_TRUE(MayWrite(mapping, 0));
  EXPECT_TRUE(MayWrite(mapping, 1));
  EXPECT_EQ(Held().devices, 1);  // a peer needs no context
}

TEST_F(CudaStandInFaults, AThousandMappingsLeaveNothingTaken) {
  const auto pool = Create().value();
  const CudaStandInHeld before = Held();
  for (int i = 0; i < 1000; ++i) {
    const auto memory = cuda::Memory::Import(cuda::FindDevice("0").value(),
                                             pool->ExportShard(0).value().get(),
                                             pool->shards()[0].size_bytes);
    EXPECT_TRUE(cuda::Mapping::Map(memory.value()).ok());
  }
  EXPECT_EQ(Held(), before);
}

TEST_F(CudaStandInFaults, APoolTakesNoContextAndNoAddress) {
  const auto pool = Create({"0", "1"}).value();
  EXPECT_EQ(Held(), (CudaStandInHeld{.devices = 0,
                                     .contexts = 0,
                                     .handles = 2,
                                     .reservations = 0,
                                     .mappings = 0,
                                     .pinned = 0,
                                     .streams = 0,
                                     .events = 0}));
}

TEST_F(CudaStandInFaults, FreeMemoryIsSharedAmongTheShardsOfADevice) {
  constexpr uint64_t kDeviceBytes = 1 << 30;
  EXPECT_EQ(FreeBytesPerShard({"0", "1"}).value(), kDeviceBytes);
  EXPECT_EQ(FreeBytesPerShard({"0", "0", "1"}).value(), kDeviceBytes / 2);
  const auto pool = Create({"1"}).value();
  EXPECT_EQ(FreeBytesPerShard({"0", "1"}).value(),
            kDeviceBytes - pool->shards()[0].size_bytes);
}

TEST_F(CudaStandInFaults, APoolThatNoDeviceHoldsIsRefusedInItsOwnTerms) {
  EXPECT_THAT(
      MessageOf(CudaKvPool::Create(kShape, 100'000'000, {"0"}).status()),
      testing::MatchesRegex("a shard needs 4000000000 bytes; GPU 0 \\(.*\\) "
                            "has 1073741824 bytes of memory"));
}

// The CUDA runtime needs functions of the driver that the stand-in lacks.
TEST_F(CudaStandInFaults, AChecksummerWhichNeedsKernelsIsRefusedWithTheReason) {
  const auto pool = Create().value();
  EXPECT_THAT(MessageOf(pool->MakeChecksummer().status()),
              HasSubstr("cudaSetDevice"));
}

}  // namespace
}  // namespace pando
