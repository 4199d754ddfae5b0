// Tests how a mover ends orders that are under way at the same time. The mover
// has one GPU, which is the stand-in for the driver; the test plays pandod.
#include "mover/pandod_link.h"

#include <dlfcn.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "mover/mapped_file.h"
#include "mover/message_socket.h"
#include "tests/support/cuda_stand_in/control.h"

namespace pando::mover {
namespace {

constexpr uint32_t kPages = 256;
constexpr uint64_t kPageBytes = 8192;
constexpr uint64_t kShardBytes = kPages * kPageBytes;  // 2 MiB, as on a GPU
constexpr timeval kPatience = {.tv_sec = 60, .tv_usec = 0};

template <typename Function>
Function* Control(const char* name) {
  return reinterpret_cast<Function*>(
      dlsym(dlopen("libcuda.so.1", RTLD_NOW), name));
}

void MakeCopies(Direction direction, bool are_made) {
  Control<decltype(CudaStandInMakeCopies)>("CudaStandInMakeCopies")(
      direction == Direction::kIn, are_made);
}

int CopiesBegun() {
  return Control<decltype(CudaStandInCalls)>("CudaStandInCalls")(
      "cuMemcpy2DAsync");
}

UniqueFd MakeFile(const char* name, uint64_t bytes) {
  UniqueFd file(memfd_create(name, MFD_CLOEXEC));
  EXPECT_EQ(ftruncate(file.get(), static_cast<off_t>(bytes)), 0);
  return file;
}

class PandodLinkTest : public testing::Test {
 protected:
  void SetUp() override {
    shard_.push_back(MakeFile("transfers", kShardBytes));
    shard_.push_back(MakeFile("cuda_stand_in_device_0", kShardBytes));
    Listen();
    mover_ = std::thread([this] { Run(); });
    link_ = UniqueFd(accept(listener_.get(), nullptr, nullptr));
    setsockopt(link_.get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience,
               sizeof(kPatience));
    Hello hello;
    ASSERT_TRUE(Receive(link_.get(), hello).ok());
    Welcome welcome;
    welcome.capacity_pages = kPages;
    welcome.num_shards = 1;
    welcome.geometry = {.pieces = 2,
                        .page_stride = kPageBytes,
                        .piece_stride = kPageBytes / 2,
                        .piece_bytes = kPageBytes / 2};
    welcome.shard_bytes = welcome.transfer_bytes = kShardBytes;
    ASSERT_TRUE(Send(link_.get(), welcome, shard_).ok());
    ASSERT_EQ(NextReply(), 0u);
    begun_before_ = CopiesBegun();
  }

  void TearDown() override {
    for (const Direction each : {Direction::kIn, Direction::kOut}) {
      MakeCopies(each, true);
    }
    Stop();
    mover_.join();
    unlink(path_.c_str());
  }

  void Stop() const { eventfd_write(stop_.get(), 1); }

  void Order(uint64_t id, uint32_t page, Direction direction) const {
    const mover::Order order = {.id = id,
                                .block = page * kPageBytes,
                                .page = page,
                                .direction = direction};
    ASSERT_TRUE(Send(link_.get(), order).ok());
  }

  uint64_t NextReply() const {
    Reply reply;
    EXPECT_TRUE(Receive(link_.get(), reply).ok());
    EXPECT_EQ(reply.is_done, 1u);
    return reply.id;
  }

  // Waits until the mover has begun `copies` copies in all.
  void AwaitBegun(int copies) const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (CopiesBegun() - begun_before_ < copies) {
      ASSERT_LT(std::chrono::steady_clock::now(), end)
          << "begun: " << CopiesBegun();
      std::this_thread::yield();
    }
  }

  // Returns the bytes of a page in a shard, or of the page's block in the
  // transfer memory.
  std::span<std::byte> PageOf(const MappedFile& file, uint32_t page) const {
    return file.bytes().subspan(page * kPageBytes, kPageBytes);
  }

  const std::string path_ = testing::TempDir() + "/pandod_link_test.sock";
  UniqueFd listener_, link_;
  const UniqueFd stop_{eventfd(0, EFD_CLOEXEC)};
  std::vector<UniqueFd> shard_;
  std::thread mover_;
  absl::Status served_;
  int begun_before_ = 0;

 private:
  void Listen() {
    unlink(path_.c_str());
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof(address.sun_path) - 1);
    listener_ = UniqueFd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address),
                   sizeof(address)),
              0);
    ASSERT_EQ(listen(listener_.get(), 1), 0);
  }

  void Run() {
    auto link =
        PandodLink::Connect(path_, "cuda:57a2d1f0-0000-4000-8000-000000000000");
    served_ = link.ok() ? link->Serve(stop_) : link.status();
  }
};

TEST_F(PandodLinkTest,
       OrdersBeginWhileOthersAreUnderWayAndAreAnsweredAsTheyEnd) {
  const auto transfers = MappedFile::Map(shard_[0], kShardBytes).value();
  const auto shard = MappedFile::Map(shard_[1], kShardBytes).value();
  std::ranges::fill(PageOf(shard, 1), std::byte{1});
  std::ranges::fill(PageOf(transfers, 2), std::byte{2});
  MakeCopies(Direction::kOut, false);
  Order(11, 1, Direction::kOut);
  AwaitBegun(1);
  Order(12, 2, Direction::kIn);
  EXPECT_EQ(NextReply(), 12u);
  EXPECT_EQ(PageOf(shard, 2).back(), std::byte{2});
  EXPECT_EQ(PageOf(transfers, 1).back(), std::byte{0});
  MakeCopies(Direction::kOut, true);
  EXPECT_EQ(NextReply(), 11u);
  EXPECT_EQ(PageOf(transfers, 1).back(), std::byte{1});
}

TEST_F(PandodLinkTest, MoreOrdersThanMayBeUnderWayAreAllAnswered) {
  MakeCopies(Direction::kOut, false);
  std::set<uint64_t> expected;
  for (uint32_t i = 1; i <= 3 * kMaxOrders; ++i) {
    Order(i, i, Direction::kOut);
    expected.insert(i);
  }
  AwaitBegun(kMaxOrders);
  MakeCopies(Direction::kOut, true);
  std::set<uint64_t> replies;
  for (size_t i = 0; i < expected.size(); ++i) replies.insert(NextReply());
  EXPECT_EQ(replies, expected);
}

TEST_F(PandodLinkTest, WhatIsUnderWayIsAnsweredBeforeItStops) {
  MakeCopies(Direction::kOut, false);
  Order(11, 1, Direction::kOut);
  AwaitBegun(1);
  Stop();
  MakeCopies(Direction::kOut, true);
  EXPECT_EQ(NextReply(), 11u);
  mover_.join();
  EXPECT_TRUE(served_.ok()) << served_;
  mover_ = std::thread([] {});
}

}  // namespace
}  // namespace pando::mover
