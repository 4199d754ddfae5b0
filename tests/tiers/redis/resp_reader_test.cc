#include "tiers/redis/resp_reader.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/tiers/redis/byte_stream_of.h"

namespace pando {
namespace {

using Kind = RespReply::Kind;

constexpr absl::Time kNoDeadline = absl::InfiniteFuture();

// Returns the first reply of a text that comes in parts of one byte, so that
// each boundary in the text lies between two parts.
absl::StatusOr<RespReply> FirstReply(const std::string& text) {
  ByteStreamOf stream(text, 1);
  return RespReader(&stream).Read(RespReader::kMaxReply, kNoDeadline);
}

// Reads a value of `bytes` bytes into memory between two bytes that must not
// change.
struct ReadValue {
  explicit ReadValue(const std::string& text, size_t bytes = 5,
                     size_t part_bytes = 1)
      : memory(bytes + 2, std::byte{'#'}) {
    ByteStreamOf stream(text, part_bytes);
    reply =
        RespReader(&stream).ReadInto({memory.data() + 1, bytes}, kNoDeadline);
    EXPECT_EQ(memory.front(), std::byte{'#'});
    EXPECT_EQ(memory.back(), std::byte{'#'});
  }
  std::string value() const {
    return {reinterpret_cast<const char*>(memory.data()) + 1,
            memory.size() - 2};
  }

  std::vector<std::byte> memory;
  absl::StatusOr<RespReply> reply;
};

TEST(RespReaderTest, RepliesOfAllKindsAreRead) {
  EXPECT_EQ(FirstReply("+OK\r\n")->kind, Kind::kText);
  EXPECT_EQ(FirstReply("+OK\r\n")->text, "OK");
  EXPECT_EQ(FirstReply("-ERR no\r\n")->kind, Kind::kError);
  EXPECT_EQ(FirstReply("-ERR no\r\n")->text, "ERR no");
  EXPECT_EQ(FirstReply(":-12\r\n")->integer, -12);
  EXPECT_EQ(FirstReply("$4\r\na\r\nb\r\n")->text, "a\r\nb");
  EXPECT_EQ(FirstReply("$0\r\n\r\n")->kind, Kind::kText);
  EXPECT_EQ(FirstReply("$-1\r\n")->kind, Kind::kNull);
  EXPECT_EQ(FirstReply("*-1\r\n")->kind, Kind::kNull);
  EXPECT_EQ(FirstReply("*0\r\n")->kind, Kind::kArray);
  const absl::StatusOr<RespReply> nested =
      FirstReply("*2\r\n$1\r\n7\r\n*2\r\n:1\r\n$-1\r\n");
  ASSERT_EQ(nested->elements.size(), 2u);
  EXPECT_EQ(nested->elements[0].text, "7");
  EXPECT_EQ(nested->elements[1].elements[0].integer, 1);
  EXPECT_EQ(nested->elements[1].elements[1].kind, Kind::kNull);
}

TEST(RespReaderTest, RepliesFollowEachOther) {
  for (const size_t part_bytes : {1, 3, 1000}) {
    ByteStreamOf stream(":1\r\n$5\r\nvalue\r\n:2\r\n", part_bytes);
    RespReader reader(&stream);
    std::vector<std::byte> value(5);
    EXPECT_EQ(reader.Read(RespReader::kMaxReply, kNoDeadline)->integer, 1);
    EXPECT_EQ(reader.ReadInto(value, kNoDeadline)->kind, Kind::kValue);
    EXPECT_EQ(reader.Read(RespReader::kMaxReply, kNoDeadline)->integer, 2);
    EXPECT_FALSE(reader.Read(RespReader::kMaxReply, kNoDeadline).ok());
  }
}

TEST(RespReaderTest, AValueGoesWhereItIsWanted) {
  for (const size_t part_bytes : {1, 2, 7, 1000}) {
    const ReadValue read("$5\r\nvalue\r\n", 5, part_bytes);
    EXPECT_EQ(read.reply->kind, Kind::kValue);
    EXPECT_EQ(read.value(), "value");
  }
  const std::string large(100'000, 'x');
  const ReadValue read(absl::StrCat("$100000\r\n", large, "\r\n"), 100'000,
                       70'000);
  EXPECT_EQ(read.value(), large);
}

TEST(RespReaderTest, AValueOfAnotherLengthIsThrownAway) {
  for (const std::string text :
       {"$0\r\n\r\n", "$4\r\nvalu\r\n", "$6\r\nvalues\r\n"}) {
    const ReadValue read(text);
    EXPECT_EQ(read.reply->kind, Kind::kOtherLength);
    EXPECT_EQ(read.value(), "#####");
  }
}

TEST(RespReaderTest, AValueThatIsMuchTooLongIsRefused) {
  const size_t bytes = 5 + RespReader::kMaxExcess;
  const std::string body(bytes, 'x');
  EXPECT_EQ(ReadValue(absl::StrCat("$", bytes, "\r\n", body, "\r\n"), 5, 1000)
                .reply->kind,
            Kind::kOtherLength);
  EXPECT_TRUE(absl::IsDataLoss(
      ReadValue(absl::StrCat("$", bytes + 1, "\r\n")).reply.status()));
  EXPECT_TRUE(
      absl::IsDataLoss(ReadValue("$9223372036854775807\r\n").reply.status()));
}

TEST(RespReaderTest, WhatIsNoValueIsReadAsWhatItIs) {
  EXPECT_EQ(ReadValue("$-1\r\n").reply->kind, Kind::kNull);
  EXPECT_EQ(ReadValue("-WRONGTYPE it\r\n").reply->text, "WRONGTYPE it");
  EXPECT_EQ(ReadValue(":5\r\n").reply->kind, Kind::kInteger);
}

TEST(RespReaderTest, MalformedRepliesAreErrors) {
  for (const std::string text : {"",
                                 "\r\n",
                                 "\n",
                                 "OK\r\n",
                                 "+OK\n",
                                 "+OK",
                                 ":\r\n",
                                 ":1x\r\n",
                                 ": 1\r\n",
                                 ":+1\r\n",
                                 ":9223372036854775808\r\n",
                                 "$-2\r\n",
                                 "*-2\r\n",
                                 "$5\r\nvaluexx",
                                 "$5\r\nvalu",
                                 "$5\r\nvalue\n\r",
                                 "$\r\n",
                                 "*x\r\n",
                                 "*1\r\n",
                                 "*1\r\n?\r\n",
                                 "%1\r\n+a\r\n+b\r\n",
                                 "_\r\n"}) {
    EXPECT_FALSE(FirstReply(text).ok()) << text;
    EXPECT_FALSE(ReadValue(text).reply.ok()) << text;
  }
}

TEST(RespReaderTest, AReplyHasTheLimitThatItsReaderGives) {
  for (const std::string text : {"+abc\r\n", "$3\r\nabc\r\n"}) {
    ByteStreamOf stream(text + text, 100);
    RespReader reader(&stream);
    EXPECT_TRUE(reader.Read(3, kNoDeadline).ok());
    EXPECT_FALSE(reader.Read(2, kNoDeadline).ok());
  }
}

TEST(RespReaderTest, ItTellsOfWhatWasSentBesideTheReply) {
  ByteStreamOf stream(":1\r\n:2\r\n", 100);
  RespReader reader(&stream);
  EXPECT_TRUE(reader.is_empty());
  ASSERT_TRUE(reader.Read(RespReader::kMaxReply, kNoDeadline).ok());
  EXPECT_FALSE(reader.is_empty());
  ASSERT_TRUE(reader.Read(RespReader::kMaxReply, kNoDeadline).ok());
  EXPECT_TRUE(reader.is_empty());
}

TEST(RespReaderTest, RepliesThatAreTooLongAreErrors) {
  const auto repeated = [](size_t times, const std::string& text) {
    std::string all;
    for (size_t i = 0; i < times; ++i) all += text;
    return all;
  };
  const std::string line(RespReader::kMaxLine - 3, 'x');
  EXPECT_TRUE(FirstReply(absl::StrCat("+", line, "\r\n")).ok());
  EXPECT_FALSE(FirstReply(absl::StrCat("+x", line, "\r\n")).ok());
  EXPECT_FALSE(
      FirstReply(absl::StrCat("$", RespReader::kMaxReply + 1, "\r\n")).ok());
  // An array of too many elements is refused even if all of them come.
  const size_t elements = RespReader::kMaxReply / RespReader::kElementBytes;
  EXPECT_TRUE(FirstReply(absl::StrCat("*", elements, "\r\n",
                                      repeated(elements, ":1\r\n")))
                  .ok());
  EXPECT_FALSE(FirstReply(absl::StrCat("*", elements + 1, "\r\n",
                                       repeated(elements + 1, ":1\r\n")))
                   .ok());
  EXPECT_FALSE(
      FirstReply(absl::StrCat("*2000\r\n", repeated(2000, "+" + line + "\r\n")))
          .ok());
  EXPECT_TRUE(
      FirstReply(repeated(RespReader::kMaxDepth, "*1\r\n") + ":1\r\n").ok());
  EXPECT_FALSE(
      FirstReply(repeated(RespReader::kMaxDepth + 1, "*1\r\n") + ":1\r\n")
          .ok());
}

}  // namespace
}  // namespace pando
