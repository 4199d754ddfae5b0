#include "tiers/redis/socket_stream.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "os/monotonic_clock.h"

namespace pando {
namespace {

absl::Time Late() { return MonotonicNow() + absl::Minutes(2); }
absl::Time Soon() { return MonotonicNow() + absl::Milliseconds(20); }

iovec PartOf(std::string& text) { return {text.data(), text.size()}; }

// A stream, and the other end of its socket.
struct Pair {
  Pair() {
    int fds[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    EXPECT_EQ(fcntl(fds[0], F_SETFL, O_NONBLOCK), 0);
    const int bytes = 4096;
    setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
    stream.emplace(UniqueFd(fds[0]));
    other = UniqueFd(fds[1]);
  }

  std::optional<SocketStream> stream;
  UniqueFd other;
};

TEST(SocketStreamTest, AllPartsArriveThoughTheSocketTakesThemInPieces) {
  Pair pair;
  // One system call cannot take so many parts, some of which are empty.
  std::vector<std::string> texts;
  std::string all;
  for (size_t i = 0; i < 3'000; ++i) {
    texts.push_back(std::string(i % 500, static_cast<char>('a' + i % 26)));
    all += texts.back();
  }
  std::vector<iovec> parts;
  for (std::string& text : texts) parts.push_back(PartOf(text));
  std::string received;
  std::thread reader([&] {
    std::array<char, 4096> some;
    while (received.size() < all.size()) {
      const ssize_t bytes = read(pair.other.get(), some.data(), some.size());
      if (bytes <= 0) break;
      received.append(some.data(), static_cast<size_t>(bytes));
    }
  });
  EXPECT_TRUE(pair.stream->Write(parts, Late()).ok());
  reader.join();
  EXPECT_TRUE(received == all);
}

TEST(SocketStreamTest, AWriteThatNobodyReadsEndsAtItsDeadline) {
  Pair pair;
  std::string body(3'000'000, 'x');
  EXPECT_TRUE(
      absl::IsDeadlineExceeded(pair.stream->Write({PartOf(body)}, Soon())));
}

TEST(SocketStreamTest, AWriteToWhoHasLeftIsAnErrorAndNoSignal) {
  Pair pair;
  pair.other = UniqueFd();
  std::string body = "x";
  EXPECT_TRUE(absl::IsUnavailable(pair.stream->Write({PartOf(body)}, Late())));
}

TEST(SocketStreamTest, AReadGetsWhatIsThereThenTheEnd) {
  Pair pair;
  EXPECT_TRUE(pair.stream->IsQuiet());
  ASSERT_EQ(write(pair.other.get(), "abc", 3), 3);
  EXPECT_FALSE(pair.stream->IsQuiet());
  std::array<std::byte, 2> two;
  EXPECT_EQ(*pair.stream->Read(two, Late()), 2u);
  EXPECT_EQ(*pair.stream->Read(two, Late()), 1u);
  EXPECT_TRUE(pair.stream->IsQuiet());
  EXPECT_TRUE(
      absl::IsDeadlineExceeded(pair.stream->Read(two, Soon()).status()));
  pair.other = UniqueFd();
  EXPECT_FALSE(pair.stream->IsQuiet());
  EXPECT_TRUE(absl::IsUnavailable(pair.stream->Read(two, Late()).status()));
}

TEST(SocketStreamTest, WhatHasComeIsNotReadAfterTheDeadline) {
  Pair pair;
  ASSERT_EQ(write(pair.other.get(), "abc", 3), 3);
  std::array<std::byte, 2> two;
  EXPECT_TRUE(absl::IsDeadlineExceeded(
      pair.stream->Read(two, MonotonicNow() - absl::Nanoseconds(1)).status()));
}

TEST(ConnectToTest, WhereNobodyListensIsAnError) {
  EXPECT_TRUE(absl::IsUnavailable(
      ConnectTo({.host = "/nowhere/redis.sock"}, Late()).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      ConnectTo({.host = "/" + std::string(200, 'a')}, Late()).status()));
  // This socket takes a port, but does not listen yet.
  const UniqueFd taken(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(bind(taken.get(), reinterpret_cast<const sockaddr*>(&address),
                 sizeof(address)),
            0);
  socklen_t length = sizeof(address);
  getsockname(taken.get(), reinterpret_cast<sockaddr*>(&address), &length);
  const uint16_t port = ntohs(address.sin_port);
  EXPECT_TRUE(absl::IsUnavailable(
      ConnectTo({.host = "127.0.0.1", .port = port}, Late()).status()));
  ASSERT_EQ(listen(taken.get(), 1), 0);
  EXPECT_TRUE(ConnectTo({.host = "127.0.0.1", .port = port}, Late()).ok());
}

}  // namespace
}  // namespace pando
