#include "service/calls/request_parts.h"

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pando/v1/prefix_cache.pb.h"

namespace pando {
namespace {

using ::testing::HasSubstr;

template <typename Request = v1::MatchPrefixesRequest>
absl::Status Check(const std::string& bytes) {
  google::protobuf::io::ArrayInputStream stream(bytes.data(),
                                                static_cast<int>(bytes.size()));
  return CheckRequestParts(stream, *Request::descriptor());
}

std::string Repeat(const std::string& bytes, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += bytes;
  return all;
}

// Returns the encoding of a field with `bytes` as its value.
std::string Field(int number, const std::string& bytes) {
  std::string field(1, static_cast<char>(number << 3 | 2));
  for (size_t size = bytes.size();; size >>= 7) {
    field.push_back(static_cast<char>((size & 127) | (size > 127 ? 128 : 0)));
    if (size <= 127) break;
  }
  return field + bytes;
}

TEST(RequestParts, RoomIsForAllQueriesWithNamespacesAndHandles) {
  v1::MatchPrefixesRequest request;
  for (int i = 0; i < 4096; ++i) {
    v1::PrefixQuery& query = *request.add_queries();
    query.mutable_namespace_()->set_extra_key("tenant");
    query.mutable_after()->set_tokens(16);
    for (uint32_t token = 0; token < 16; ++token) query.add_tokens(token);
  }
  EXPECT_TRUE(Check(request.SerializeAsString()).ok());
}

TEST(RequestParts, MillionsOfEmptyQueriesAreRefused) {
  const absl::Status status = Check(Repeat(Field(1, ""), 8'000'000));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("more than 12352 messages within it"));
}

TEST(RequestParts, FieldsThatAreNotKnownAreRefusedWhenThereAreTooMany) {
  EXPECT_TRUE(Check(Repeat(Field(15, ""), 10)).ok());
  EXPECT_FALSE(Check(Repeat(Field(15, ""), 20'000)).ok());
  EXPECT_FALSE(Check(Field(1, Repeat(Field(15, ""), 20'000))).ok())
      << "within a query";
  EXPECT_FALSE(Check(Repeat(std::string("\x78\x01"), 20'000)).ok())
      << "numbers";
}

TEST(RequestParts, KnownFieldsOfAnotherTypeAreNotKnown) {
  EXPECT_FALSE(Check<v1::UnlockRequest>(Repeat(Field(1, ""), 20'000)).ok());
}

TEST(RequestParts, GroupsAreRefused) { EXPECT_FALSE(Check("\x7b\x7c").ok()); }

TEST(RequestParts, ListsOfNumbersAreNoParts) {
  v1::MatchPrefixesRequest request;
  v1::PrefixQuery& query = *request.add_queries();
  for (uint32_t token = 0; token < 1'000'000; ++token) query.add_tokens(token);
  EXPECT_TRUE(Check(request.SerializeAsString()).ok());
  // The tokens are not packed here. A parser has to accept that encoding of the
  // tokens, too.
  const int number = v1::PrefixQuery::kTokensFieldNumber;
  const std::string token = {static_cast<char>(number << 3 | 5), 1, 0, 0, 0};
  EXPECT_TRUE(Check(Field(1, Repeat(token, 100'000))).ok());
}

TEST(RequestParts, OfWhatIsNoMessageNothingIsSaid) {
  EXPECT_TRUE(Check("\xff\xff\xff").ok());
  EXPECT_TRUE(Check(std::string("\x0a\x7f", 2)).ok());
  EXPECT_TRUE(Check("").ok());
}

}  // namespace
}  // namespace pando
