// Tests PageMovers with peers that follow the protocol and with peers that
// break it. The peers are in this process, and connect to a real socket.
#include "tiers/copying/page_movers.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gpu/host_kv_pool.h"
#include "gtest/gtest.h"
#include "mover/message_socket.h"
#include "tiers/copying/transfer_memory.h"

namespace pando {
namespace {

using mover::Direction;

constexpr absl::Duration kHungAfter = absl::Milliseconds(200);
constexpr absl::Duration kReadyWithin = absl::Seconds(1);

class PageMoversTest : public testing::Test {
 protected:
  PageMoversTest() {
    std::string folder = testing::TempDir() + "moversXXXXXX";
    folder_ = mkdtemp(folder.data());
    pool_ = HostKvPool::Create({.layers = 2,
                                .kv_planes = 2,
                                .heads = 1,
                                .head_size = 8,
                                .dtype = DType::kFloat32,
                                .page_tokens = 4,
                                .order = LayoutOrder::kLayerFirst},
                               8, 1)
                .value();
    memory_ = TransferMemory::Make(PageBytes(pool_->layout()), 0).value();
    Start({.quarantine = absl::Seconds(1),
           .hung_after = kHungAfter,
           .ready_within = kReadyWithin});
  }
  ~PageMoversTest() override {
    movers_.reset();
    std::filesystem::remove_all(folder_);
  }

  void Start(const MoverConnection::Times& times) {
    movers_.reset();
    movers_ =
        PageMovers::Start({.socket = folder_ + "/mover.sock", .times = times},
                          pool_.get(), memory_.get())
            .value();
  }

  UniqueFd Connect() const {
    UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    (folder_ + "/mover.sock").copy(address.sun_path, 107);
    EXPECT_EQ(connect(socket.get(), reinterpret_cast<sockaddr*>(&address),
                      sizeof(address)),
              0);
    return socket;
  }

  // Says hello to pandod, and returns its answer.
  static mover::Welcome Greet(const UniqueFd& socket,
                              const std::string& device = "host",
                              uint64_t magic = mover::kMagic) {
    mover::Hello hello = {.magic = magic};
    device.copy(hello.device.data(), hello.device.size() - 1);
    EXPECT_TRUE(mover::Send(socket.get(), hello).ok());
    mover::Welcome welcome;
    EXPECT_TRUE(mover::Receive(socket.get(), welcome).ok());
    return welcome;
  }

  // Returns the socket of a mover that has told pandod that it can copy.
  UniqueFd Ready() const {
    UniqueFd socket = Connect();
    EXPECT_STREQ(Greet(socket).refusal.data(), "");
    EXPECT_TRUE(mover::Send(socket.get(), mover::Reply{.is_done = 1}).ok());
    while (!movers_->AreReady()) std::this_thread::yield();
    return socket;
  }

  // Waits until pandod accepts another mover of the device.
  void AwaitPlace() const {
    while (Greet(Connect()).refusal[0] != 0) std::this_thread::yield();
  }

  static mover::Order NextOrder(const UniqueFd& socket) {
    mover::Order order;
    EXPECT_TRUE(mover::Receive(socket.get(), order).ok());
    return order;
  }
  static void Reply(const UniqueFd& socket, uint64_t id, bool is_done = true) {
    EXPECT_TRUE(
        mover::Send(socket.get(),
                    mover::Reply{.id = id, .is_done = is_done ? 1u : 0u})
            .ok());
  }

  std::string folder_;
  std::unique_ptr<HostKvPool> pool_;
  std::unique_ptr<TransferMemory> memory_;
  std::unique_ptr<PageMovers> movers_;
};

TEST_F(PageMoversTest, WithoutAMoverNothingIsCopied) {
  EXPECT_FALSE(movers_->AreReady());
  EXPECT_TRUE(
      absl::IsUnavailable(movers_->Copy(Direction::kOut, PageId(1), 0)));
}

TEST_F(PageMoversTest, ACopyIsOverWhenItIsAnswered) {
  const UniqueFd socket = Ready();
  absl::Status copied = absl::UnknownError("");
  std::thread caller(
      [&] { copied = movers_->Copy(Direction::kIn, PageId(5), 128); });
  const mover::Order order = NextOrder(socket);
  EXPECT_EQ(order.page, 5u);
  EXPECT_EQ(order.block, 128u);
  EXPECT_EQ(order.direction, Direction::kIn);
  Reply(socket, order.id);
  caller.join();
  EXPECT_TRUE(copied.ok());
}

TEST_F(PageMoversTest, AnswersMayComeInAnyOrder) {
  const UniqueFd socket = Ready();
  std::vector<absl::Status> copied(4);
  std::vector<std::thread> callers;
  std::vector<mover::Order> orders;
  for (uint32_t i = 0; i < 4; ++i) {
    callers.emplace_back(
        [&, i] { copied[i] = movers_->Copy(Direction::kOut, PageId(i), 0); });
    orders.push_back(NextOrder(socket));
  }
  for (size_t i = 4; i-- > 0;) Reply(socket, orders[i].id, i % 2 == 0);
  for (std::thread& caller : callers) caller.join();
  for (uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(copied[orders[i].page].ok(), i % 2 == 0);
  }
}

TEST_F(PageMoversTest, AnswersThatNobodyWaitsForAreIgnored) {
  const UniqueFd socket = Ready();
  Reply(socket, 77);
  absl::Status copied;
  std::thread caller(
      [&] { copied = movers_->Copy(Direction::kOut, PageId(1), 0); });
  const mover::Order order = NextOrder(socket);
  Reply(socket, order.id, false);
  Reply(socket, order.id, true);
  caller.join();
  EXPECT_TRUE(absl::IsInternal(copied));
}

// The mover's process, which is this one, has not ended, so it may still copy.
TEST_F(PageMoversTest, ACopyIsWaitedForAfterTheConnectionWasLost) {
  std::optional<UniqueFd> socket = Ready();
  std::optional<absl::Status> copied;
  std::thread caller(
      [&] { copied = movers_->Copy(Direction::kOut, PageId(1), 0); });
  NextOrder(*socket);
  socket.reset();
  while (movers_->AreReady()) std::this_thread::yield();
  // With a new hello, the process says that it has stopped all copies.
  const UniqueFd again = Ready();
  caller.join();
  EXPECT_TRUE(absl::IsUnavailable(*copied));
}

TEST_F(PageMoversTest, GivingUpEndsCopiesThatAreUnderWay) {
  const UniqueFd socket = Ready();
  absl::Status copied;
  std::thread caller(
      [&] { copied = movers_->Copy(Direction::kOut, PageId(1), 0); });
  NextOrder(socket);
  movers_->GiveUp();
  caller.join();
  EXPECT_TRUE(absl::IsUnavailable(copied));
  EXPECT_FALSE(movers_->AreReady());
}

TEST_F(PageMoversTest, AMoverThatHangsIsNotThereUntilItGoesOn) {
  const UniqueFd socket = Ready();
  absl::Status copied = absl::UnknownError("");
  std::thread caller(
      [&] { copied = movers_->Copy(Direction::kOut, PageId(1), 0); });
  const mover::Order order = NextOrder(socket);
  while (movers_->AreReady()) std::this_thread::yield();
  EXPECT_FALSE(movers_->presence().front().is_there);
  Reply(socket, order.id);
  caller.join();
  EXPECT_TRUE(copied.ok());
  EXPECT_TRUE(movers_->AreReady());
}

TEST_F(PageMoversTest, APeerThatSaysHelloByteByByteIsNotWaitedFor) {
  const UniqueFd slow = Connect();
  const char byte = 0;
  ASSERT_EQ(send(slow.get(), &byte, 1, 0), 1);
  const UniqueFd socket = Ready();
  EXPECT_TRUE(movers_->AreReady());
}

TEST_F(PageMoversTest, PeersThatSayNothingHoldNoMoverUp) {
  Start({.quarantine = absl::Seconds(1), .hello_within = absl::Hours(1)});
  std::vector<UniqueFd> silent(1000);
  for (UniqueFd& socket : silent) socket = Connect();
  const UniqueFd socket = Ready();
  EXPECT_TRUE(movers_->AreReady());
}

TEST_F(PageMoversTest, APeerThatSaysNothingIsSentAway) {
  const UniqueFd silent = Connect();
  mover::Welcome answer;
  ASSERT_TRUE(mover::Receive(silent.get(), answer).ok());
  EXPECT_STRNE(answer.refusal.data(), "");
  EXPECT_FALSE(mover::Receive(silent.get(), answer).ok());
}

TEST_F(PageMoversTest, AMoverThatNeverBeginsGivesWayToAnother) {
  const UniqueFd silent = Connect();
  EXPECT_STREQ(Greet(silent).refusal.data(), "");
  mover::Reply said;
  EXPECT_FALSE(mover::Receive(silent.get(), said).ok());
  AwaitPlace();
}

TEST_F(PageMoversTest, AMoverThatAnswersBeforeItBeginsGivesWayToAnother) {
  const UniqueFd early = Connect();
  EXPECT_STREQ(Greet(early).refusal.data(), "");
  Reply(early, 7);
  mover::Reply said;
  EXPECT_FALSE(mover::Receive(early.get(), said).ok());
  AwaitPlace();
}

TEST_F(PageMoversTest, OnlyOneIsWelcomeForADevice) {
  const UniqueFd socket = Ready();
  EXPECT_STREQ(Greet(Connect()).refusal.data(),
               "host has a pando-mover already");
}

TEST_F(PageMoversTest, AnotherDeviceOrVersionIsRefused) {
  EXPECT_STREQ(Greet(Connect(), "cuda:1").refusal.data(),
               "the pool has no shard on cuda:1; its first one is on host");
  EXPECT_STREQ(Greet(Connect(), "host", 1).refusal.data(),
               "it is of another version");
  EXPECT_STREQ(Greet(Connect(), std::string(1000, 'x')).refusal.data(),
               ("the pool has no shard on " + std::string(127, 'x') +
                "; its first one is on host")
                   .substr(0, 255)
                   .c_str());
}

TEST_F(PageMoversTest, ItIsNotThereBeforeItHasMappedAll) {
  const UniqueFd socket = Connect();
  EXPECT_STREQ(Greet(socket).refusal.data(), "");
  EXPECT_FALSE(movers_->AreReady());
  EXPECT_TRUE(
      absl::IsUnavailable(movers_->Copy(Direction::kOut, PageId(1), 0)));
}

}  // namespace
}  // namespace pando
