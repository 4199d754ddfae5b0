// Tests messages of the movers over a real pair of sockets.
#include "mover/message_socket.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "mover/messages.h"

namespace pando::mover {
namespace {

std::pair<UniqueFd, UniqueFd> Pair() {
  int ends[2] = {-1, -1};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

TEST(MessageSocket, DescriptorsArriveWithTheirMessage) {
  const auto [one, other] = Pair();
  std::vector<UniqueFd> descriptors;
  for (size_t i = 0; i <= kMaxShards; ++i) {
    descriptors.emplace_back(memfd_create("shard", MFD_CLOEXEC));
    ASSERT_EQ(ftruncate(descriptors.back().get(), 4096 + i), 0);
  }
  Welcome sent;
  sent.num_shards = kMaxShards;
  ASSERT_TRUE(Send(one.get(), sent, descriptors).ok());
  Welcome received;
  const auto taken = Receive(other.get(), received);
  ASSERT_TRUE(taken.ok());
  EXPECT_EQ(received.num_shards, kMaxShards);
  ASSERT_EQ(taken->size(), descriptors.size());
  for (size_t i = 0; i < taken->size(); ++i) {
    EXPECT_EQ(lseek((*taken)[i].get(), 0, SEEK_END),
              4096 + static_cast<off_t>(i));
    EXPECT_NE(fcntl((*taken)[i].get(), F_GETFD) & FD_CLOEXEC, 0);
  }
}

TEST(MessageSocket, MessagesThatComeInPiecesAreWhole) {
  const auto [one, other] = Pair();
  const Order sent = {
      .id = 7, .block = 8, .page = 9, .direction = Direction::kIn};
  const auto bytes = std::as_bytes(std::span(&sent, 1));
  ASSERT_TRUE(SendBytes(one.get(), bytes.first(5), {}).ok());
  ASSERT_TRUE(SendBytes(one.get(), bytes.subspan(5), {}).ok());
  Order received;
  ASSERT_TRUE(Receive(other.get(), received).ok());
  EXPECT_EQ(received.id, 7u);
  EXPECT_EQ(received.direction, Direction::kIn);
}

TEST(MessageSocket, APeerThatIsGoneIsUnavailable) {
  auto [one, other] = Pair();
  other = UniqueFd();
  Order order;
  EXPECT_TRUE(absl::IsUnavailable(Receive(one.get(), order).status()));
  EXPECT_TRUE(absl::IsUnavailable(Send(one.get(), order)));
}

TEST(MessageSocket, APeerThatReadsNothingIsNotWaitedFor) {
  const auto [one, other] = Pair();
  absl::Status sent;
  for (int i = 0; i < 1'000'000 && sent.ok(); ++i) {
    sent = Send(one.get(), Order());
  }
  EXPECT_TRUE(absl::IsUnavailable(sent));
}

}  // namespace
}  // namespace pando::mover
