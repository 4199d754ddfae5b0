#include "gpu/kv_layout.h"

#include <cstdint>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pando {
namespace {

using ::testing::HasSubstr;

constexpr uint32_t kCapacity = 5;

KvShape SmallShape() {
  return {.layers = 2,
          .kv_planes = 2,
          .heads = 3,
          .head_size = 4,
          .dtype = DType::kBFloat16,
          .page_tokens = 8,
          .order = LayoutOrder::kLayerFirst};
}

// Returns the offset of each element's first byte, once for each index tuple.
std::vector<uint64_t> ElementOffsets(const KvLayout& l, uint32_t capacity) {
  std::vector<uint64_t> offsets;
  for (uint32_t layer = 0; layer < l.layers; ++layer)
    for (uint32_t page = 0; page < capacity; ++page)
      for (uint32_t kv = 0; kv < l.kv_planes; ++kv)
        for (uint32_t token = 0; token < l.page_tokens; ++token)
          for (uint32_t head = 0; head < l.heads; ++head)
            for (uint32_t i = 0; i < l.head_size; ++i)
              offsets.push_back(layer * l.layer_stride + page * l.page_stride +
                                kv * l.kv_stride + token * l.token_stride +
                                head * l.head_stride + i * DTypeSize(l.dtype));
  return offsets;
}

class KvLayoutStrides
    : public testing::TestWithParam<std::tuple<LayoutOrder, DType, uint32_t>> {
};

TEST_P(KvLayoutStrides, PlaceElementsSideBySideOverTheWholePool) {
  KvShape shape = SmallShape();
  std::tie(shape.order, shape.dtype, shape.kv_planes) = GetParam();
  const KvLayout layout = MakeKvLayout(shape, kCapacity).value();

  const std::vector<uint64_t> offsets = ElementOffsets(layout, kCapacity);
  const std::set<uint64_t> distinct(offsets.begin(), offsets.end());
  const uint32_t element = DTypeSize(shape.dtype);
  ASSERT_EQ(distinct.size(), offsets.size());
  uint64_t expected = 0;
  for (uint64_t offset : distinct) {
    ASSERT_EQ(offset, expected);
    expected += element;
  }
  EXPECT_EQ(PoolBytes(layout, kCapacity), expected);
  EXPECT_EQ(PageBytes(layout) * kCapacity, expected);
}

INSTANTIATE_TEST_SUITE_P(
    EveryLayout, KvLayoutStrides,
    testing::Combine(
        testing::Values(LayoutOrder::kLayerFirst, LayoutOrder::kPageFirst),
        testing::Values(DType::kFloat32, DType::kFloat16, DType::kBFloat16,
                        DType::kFloat8E4M3, DType::kFloat8E5M2),
        testing::Values(1u, 2u)));

TEST(KvLayout, LayerFirstKeepsTheTokensOfConsecutivePagesTogether) {
  const KvLayout layout = MakeKvLayout(SmallShape(), kCapacity).value();
  EXPECT_EQ(layout.page_stride, layout.page_tokens * layout.token_stride);
  EXPECT_EQ(layout.kv_stride, kCapacity * layout.page_stride);
}

TEST(KvLayout, PageFirstKeepsAPageInOneBlock) {
  KvShape shape = SmallShape();
  shape.order = LayoutOrder::kPageFirst;
  const KvLayout layout = MakeKvLayout(shape, kCapacity).value();
  EXPECT_EQ(layout.page_stride, PageBytes(layout));
}

KvShape OpaqueShape(LayoutOrder order) {
  return {.layers = 3,
          .page_tokens = 8,
          .order = order,
          .opaque_bytes = 100,
          .page_format = "vllm"};
}

TEST(KvLayout, OpaquePagesOfALayerAreSideBySide) {
  const KvLayout layout =
      MakeKvLayout(OpaqueShape(LayoutOrder::kLayerFirst), kCapacity).value();
  EXPECT_EQ(layout.page_stride, 100u);
  EXPECT_EQ(layout.layer_stride, 500u);
  EXPECT_EQ(PageBytes(layout), 300u);
}

TEST(KvLayout, AnOpaquePageCanBeOneBlock) {
  const KvLayout layout =
      MakeKvLayout(OpaqueShape(LayoutOrder::kPageFirst), kCapacity).value();
  EXPECT_EQ(layout.layer_stride, 100u);
  EXPECT_EQ(layout.page_stride, 300u);
}

TEST(KvLayout, WhatIsSaidOfHeadsCountsForNothingInOpaquePages) {
  KvShape shape = OpaqueShape(LayoutOrder::kLayerFirst);
  const KvLayout plain = MakeKvLayout(shape, kCapacity).value();
  shape.kv_planes = 2;
  shape.heads = 7;
  shape.dtype = DType::kBFloat16;
  const KvLayout layout = MakeKvLayout(shape, kCapacity).value();
  EXPECT_EQ(PageBytes(layout), PageBytes(plain));
  EXPECT_EQ(Fingerprint(layout, "m"), Fingerprint(plain, "m"));
}

TEST(KvLayout, OpaqueIsNotAnElementTypeToChoose) {
  EXPECT_FALSE(ParseDType("opaque").ok());
}

struct BadShape {
  void (*spoil)(KvShape&);
  const char* message;
};

class KvLayoutErrors : public testing::TestWithParam<BadShape> {};

TEST_P(KvLayoutErrors, NameFieldValueAndLimit) {
  KvShape shape = SmallShape();
  GetParam().spoil(shape);
  const absl::Status status = MakeKvLayout(shape, kCapacity).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    EveryField, KvLayoutErrors,
    testing::Values(BadShape{[](KvShape& s) { s.layers = 0; },
                             "layers is 0; must be from 1 to 4096"},
                    BadShape{[](KvShape& s) { s.layers = 4097; },
                             "layers is 4097; must be from 1 to 4096"},
                    BadShape{[](KvShape& s) { s.kv_planes = 3; },
                             "kv_planes is 3; must be from 1 to 2"},
                    BadShape{[](KvShape& s) { s.heads = 0; },
                             "heads is 0; must be from 1 to 4096"},
                    BadShape{[](KvShape& s) { s.head_size = 0; },
                             "head_size is 0; must be from 1 to 65536"},
                    BadShape{[](KvShape& s) { s.page_format = "a;b"; },
                             "page_format is 'a;b'; must be without "
                             "semicolons"},
                    BadShape{[](KvShape& s) { s.page_format.assign(257, 'x'); },
                             "page_format has 257 bytes; the limit is 256"},
                    BadShape{[](KvShape& s) { s.opaque_bytes = 4294967297; },
                             "a page has 4294967297 bytes in a layer; the "
                             "limit is 4294967296"},
                    BadShape{
                        [](KvShape& s) { s.page_tokens = 4294967295; },
                        "page_tokens is 4294967295; must be from 1 to 65536"}));

TEST(KvLayout, RefusesAPoolWithNoPageBesideThePaddingPage) {
  EXPECT_EQ(MakeKvLayout(SmallShape(), 1).status().message(),
            "capacity_pages is 1; must be from 2 to 4294967295");
}

TEST(KvLayout, RefusesAPoolWhoseSizeOverflows) {
  const KvShape largest = {.layers = 4096,
                           .kv_planes = 2,
                           .heads = 4096,
                           .head_size = 65536,
                           .dtype = DType::kFloat32,
                           .page_tokens = 65536,
                           .order = LayoutOrder::kLayerFirst};
  const absl::Status status = MakeKvLayout(largest, 4294967295).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("capacity_pages is 4294967295"));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("at most 9223372036854775807 bytes"));
}

TEST(KvLayout, NamesOfDTypesAndOrdersParseBack) {
  for (DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16,
                      DType::kFloat8E4M3, DType::kFloat8E5M2}) {
    EXPECT_EQ(ParseDType(DTypeName(dtype)).value(), dtype);
  }
  for (LayoutOrder order :
       {LayoutOrder::kLayerFirst, LayoutOrder::kPageFirst}) {
    EXPECT_EQ(ParseLayoutOrder(LayoutOrderName(order)).value(), order);
  }
}

TEST(KvLayout, UnknownNamesAreErrorsThatListTheKnownOnes) {
  EXPECT_THAT(std::string(ParseDType("complex64").status().message()),
              HasSubstr("dtype is 'complex64'; must be one of float32, "
                        "float16"));
  EXPECT_THAT(std::string(ParseLayoutOrder("nhd").status().message()),
              HasSubstr("'nhd'; must be layer_first or page_first"));
}

TEST(Fingerprint, KnowsTheFormatOfPages) {
  KvShape shape = SmallShape();
  shape.page_format = "nhd";
  const KvLayout nhd = MakeKvLayout(shape, kCapacity).value();
  shape.page_format = "hnd";
  const KvLayout hnd = MakeKvLayout(shape, kCapacity).value();
  EXPECT_NE(Fingerprint(nhd, "m"), Fingerprint(hnd, "m"));
}

// The clients compute this value for the same layout, too.
TEST(Fingerprint, OfOpaquePagesIsStable) {
  const KvLayout layout =
      MakeKvLayout(OpaqueShape(LayoutOrder::kLayerFirst), kCapacity).value();
  EXPECT_EQ(Fingerprint(layout, "m"), 0xe5f58fa2b439304u);
}

TEST(Fingerprint, IsStable) {
  const KvLayout layout = MakeKvLayout(SmallShape(), kCapacity).value();
  EXPECT_EQ(Fingerprint(layout, "m"), 0x3bddbbfc3876f71bu);
}

TEST(Fingerprint, ChangesWithEachField) {
  const KvLayout layout = MakeKvLayout(SmallShape(), kCapacity).value();
  void (*const changes[])(KvLayout&) = {
      [](KvLayout& l) { ++l.layers; },
      [](KvLayout& l) { l.kv_planes = 1; },
      [](KvLayout& l) { ++l.heads; },
      [](KvLayout& l) { ++l.head_size; },
      [](KvLayout& l) { l.dtype = DType::kFloat16; },
      [](KvLayout& l) { ++l.page_tokens; },
      [](KvLayout& l) { l.order = LayoutOrder::kPageFirst; },
      [](KvLayout& l) { ++l.layer_stride; },
      [](KvLayout& l) { ++l.page_stride; },
      [](KvLayout& l) { ++l.kv_stride; },
      [](KvLayout& l) { ++l.token_stride; },
      [](KvLayout& l) { ++l.head_stride; },
  };
  std::set<uint64_t> seen = {Fingerprint(layout, "m"),
                             Fingerprint(layout, "n")};
  for (auto change : changes) {
    KvLayout changed = layout;
    change(changed);
    seen.insert(Fingerprint(changed, "m"));
  }
  EXPECT_EQ(seen.size(), 2 + std::size(changes));
}

}  // namespace
}  // namespace pando
