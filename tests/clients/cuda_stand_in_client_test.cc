// Tests the C++ client on a CUDA pool of a real pandod. Both use the stand-in
// for the driver, so the tests show nothing about a GPU, and run no kernel.
#include <dlfcn.h>
#include <stdlib.h>

#include <string>
#include <vector>

#include "pando/client.h"
#include "tests/clients/pandod_fixture.h"
#include "tests/support/cuda_stand_in/control.h"

namespace pando {
namespace {

using testing::HasSubstr;

class CudaStandInClientTest : public PandodTest {
 protected:
  void SetUp() override {
    setenv("LD_LIBRARY_PATH", STAND_IN_FOLDER, 1);  // for pandod
    PandodTest::SetUp();
  }

  void TearDown() override {
    PandodTest::TearDown();
    unsetenv("LD_LIBRARY_PATH");
    EXPECT_EQ(Mappings(), 0);
  }

  std::vector<std::string> MoreFlags() const override {
    return {"--pool-memory=cuda", "--pool-devices=0,1"};
  }

  // Makes the next call of `function` in this process return `result`.
  static void FailOnce(const char* function, int result) {
    Control<decltype(CudaStandInFail)>("CudaStandInFail")(function, result, 1);
  }

  static void IgnoreAddresses(bool ignores) {
    Control<decltype(CudaStandInIgnoreAddresses)>("CudaStandInIgnoreAddresses")(
        ignores);
  }

  // Returns how many shards are mapped. Expects that this process holds nothing
  // else of the driver, except ranges of addresses, which are kept.
  static int Mappings() {
    const CudaStandInHeld held =
        Control<decltype(CudaStandInCount)>("CudaStandInCount")();
    EXPECT_EQ(held.handles, held.mappings);
    EXPECT_GE(held.reservations, held.mappings);
    EXPECT_EQ(held.contexts, held.mappings);
    return held.mappings;
  }

 private:
  template <typename Function>
  static Function* Control(const char* name) {
    void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
    return reinterpret_cast<Function*>(dlsym(driver, name));
  }
};

TEST_F(CudaStandInClientTest, BytesWrittenByOneWorkerAreReadByAnother) {
  const auto a = Connect(), b = Connect();
  const auto writer = a->AttachPool(), reader = b->AttachPool();
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ(Mappings(), 4);
  for (uint32_t shard : {0, 1}) {
    const float value = 1.5f + static_cast<float>(shard);
    *reinterpret_cast<float*>(writer->KeyAddress(1, 5, 3, 1, shard)) = value;
    EXPECT_EQ(*reinterpret_cast<float*>(reader->KeyAddress(1, 5, 3, 1, shard)),
              value);
  }
}

TEST_F(CudaStandInClientTest, AMappingIsMadeAtTheAddressesOfOneThatIsGone) {
  const auto client = Connect();
  // The kernel gives these addresses only to callers that ask for them.
  std::vector<std::byte*> addresses;
  for (uintptr_t address : {0x2000'0000'0000, 0x2001'0000'0000}) {
    addresses.push_back(reinterpret_cast<std::byte*>(address));
  }
  for (int times : {1, 2}) {
    const auto pool = client->AttachPool({.addresses = addresses});
    ASSERT_TRUE(pool.ok()) << times << ": " << pool.status();
    for (uint32_t i : {0, 1}) EXPECT_EQ(pool->shard(i).data(), addresses[i]);
  }
}

// The driver of an H100 (version 580) once refused the address of a range that
// had been freed.
TEST_F(CudaStandInClientTest,
       NoDriverCanRefuseTheAddressesOfAMappingThatIsGone) {
  const auto client = Connect();
  std::vector<std::byte*> addresses;
  {
    const auto first = client->AttachPool();
    ASSERT_TRUE(first.ok()) << first.status();
    for (uint32_t i : {0, 1}) addresses.push_back(first->shard(i).data());
  }
  IgnoreAddresses(true);
  const auto again = client->AttachPool({.addresses = addresses});
  IgnoreAddresses(false);
  ASSERT_TRUE(again.ok()) << again.status();
  for (uint32_t i : {0, 1}) EXPECT_EQ(again->shard(i).data(), addresses[i]);
}

TEST_F(CudaStandInClientTest, AnAddressThatIsTakenIsRefusedAndNothingIsKept) {
  const auto client = Connect();
  const auto first = client->AttachPool();
  ASSERT_TRUE(first.ok()) << first.status();
  const absl::Status status =
      client->AttachPool({.addresses = {first->shard(0).data()}}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(
      std::string(status.message()),
      testing::MatchesRegex("shard 0: GPU 0 \\(.*\\): address 0x.* is not "
                            "to be had; the driver gives 0x.* instead"));
  EXPECT_EQ(Mappings(), 2);
}

TEST_F(CudaStandInClientTest, AWorkerOfOneShardHasOneMappingAndOneContext) {
  const auto client = Connect();
  const auto pool = client->AttachPool({.shards = {1}});
  ASSERT_TRUE(pool.ok()) << pool.status();
  EXPECT_EQ(Mappings(), 1);
  *pool->KeyAddress(0, 1, 0, 0, /*shard=*/1) = std::byte{42};
  EXPECT_TRUE(pool->shard(0).empty());
}

TEST_F(CudaStandInClientTest, AMappingOutlivesPandodAndIsReplacedByTheNext) {
  const auto client = Connect();
  auto pool = client->AttachPool();
  ASSERT_TRUE(pool.ok()) << pool.status();
  *pool->KeyAddress(0, 1, 0, 0) = std::byte{42};
  pandod_->Kill();
  EXPECT_EQ(*pool->KeyAddress(0, 1, 0, 0), std::byte{42});
  StartPandod();
  ASSERT_TRUE(Eventually([&] {
    auto next = client->AttachPool();
    if (!next.ok() || next->epoch() == pool->epoch()) return false;
    pool = std::move(next);
    return true;
  }));
  EXPECT_EQ(*pool->KeyAddress(0, 1, 0, 0), std::byte{0});
}

TEST_F(CudaStandInClientTest, AMappingThatFailsIsSaidAndLeavesNothing) {
  const auto client = Connect();
  for (const char* function :
       {"cuDevicePrimaryCtxRetain", "cuMemImportFromShareableHandle",
        "cuMemMap", "cuMemSetAccess"}) {
    SCOPED_TRACE(function);
    FailOnce(function, 800);
    const absl::Status status = client->AttachPool().status();
    EXPECT_THAT(std::string(status.message()),
                testing::MatchesRegex(
                    "shard 0: GPU 0 \\(.*\\): " + std::string(function) +
                    ": operation not permitted.*"));
    EXPECT_EQ(Mappings(), 0);
    EXPECT_TRUE(client->AttachPool().ok());
  }
}

TEST_F(CudaStandInClientTest, AnAddressThatTheDriverFailsToReserveIsSaid) {
  const auto client = Connect();
  FailOnce("cuMemAddressReserve", 800);
  // The client keeps no range at this address.
  auto* const address = reinterpret_cast<std::byte*>(0x2002'0000'0000);
  const absl::Status status =
      client->AttachPool({.addresses = {address, nullptr}}).status();
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("cuMemAddressReserve: operation not permitted"));
  EXPECT_EQ(Mappings(), 0);
}

}  // namespace
}  // namespace pando
