#include "gpu/page_copy.h"

#include <vector>

#include "gtest/gtest.h"
#include "tests/gpu/page_model.h"
#include "tests/gpu/random_pages.h"

namespace pando {
namespace {

constexpr uint64_t kSeeds = 30;

TEST(PageCopy, MovesTheNamedPagesAndTouchesNothingElse) {
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
    std::vector<std::byte> expected = target;
    for (uint32_t i = 0; i < pages; ++i) {
      ModelWritePage(to, ModelPageBytes(from, source, ids[i]), to_ids[i],
                     expected);
    }
    ASSERT_TRUE(CopyPagesOnHost({from, source.data(), ids.data()},
                                {to, target.data(), to_ids.data()}, pages)
                    .ok());
    EXPECT_TRUE(target == expected);
  }
}

TEST(PageCopy, APageMayBeGatheredMoreThanOnceAndInAnyOrder) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    RandomPages random(seed);
    const KvShape shape = random.Shape();
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << shape);
    const uint32_t capacity = random.Between(2, 9);
    const KvLayout layout = MakeKvLayout(shape, capacity).value();
    std::vector<std::byte> pool = random.Bytes(PoolBytes(layout, capacity));
    std::vector<uint32_t> ids = random.Ids(capacity);
    ids.insert(ids.end(), ids.rbegin(), ids.rend());
    std::vector<std::byte> expected;
    for (uint32_t id : ids) {
      const std::vector<std::byte> page = ModelPageBytes(layout, pool, id);
      expected.insert(expected.end(), page.begin(), page.end());
    }
    std::vector<std::byte> buffer(expected.size());
    ASSERT_TRUE(CopyPagesOnHost({layout, pool.data(), ids.data()},
                                PageBuffer(layout, buffer.data()),
                                static_cast<uint32_t>(ids.size()))
                    .ok());
    EXPECT_TRUE(buffer == expected);
  }
}

TEST(PageCopy, PagesThatDifferAreRefused) {
  const KvShape shape = {.layers = 2,
                         .kv_planes = 2,
                         .heads = 3,
                         .head_size = 4,
                         .dtype = DType::kBFloat16,
                         .page_tokens = 8,
                         .order = LayoutOrder::kLayerFirst};
  KvShape other = shape;
  other.layers = 3;
  const absl::Status status =
      CopyPagesOnHost({.layout = MakeKvLayout(shape, 4).value()},
                      {.layout = MakeKvLayout(other, 4).value()}, 1);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "pages of 2 layers, 2 planes and 768 bytes cannot be copied to "
            "pages of 3 layers, 2 planes and 1152 bytes");
}

}  // namespace
}  // namespace pando
