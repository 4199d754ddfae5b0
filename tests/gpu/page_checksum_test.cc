#include "gpu/page_checksum.h"

#include <set>
#include <vector>

#include "gpu/page_checksum_plan.h"
#include "gtest/gtest.h"
#include "tests/gpu/page_model.h"
#include "tests/gpu/random_pages.h"

namespace pando {
namespace {

constexpr uint64_t kSeeds = 30;

// Computes the checksum of a page from its bytes. Words do not span pieces of
// the page; the last word of a piece is filled up with zeros.
uint64_t ModelChecksum(const KvLayout& layout,
                       const std::vector<std::byte>& page) {
  const size_t piece_bytes = page.size() / layout.layers / layout.kv_planes;
  uint64_t sum = 0;
  uint64_t place = 0;
  for (size_t piece = 0; piece < page.size(); piece += piece_bytes) {
    for (size_t word = 0; word < piece_bytes; word += 8) {
      uint64_t value = 0;
      std::memcpy(&value, page.data() + piece + word,
                  std::min<size_t>(8, piece_bytes - word));
      sum += MixWord(value, place++);
    }
  }
  return sum;
}

std::vector<uint64_t> Checksums(const KvLayout& layout,
                                std::vector<std::byte>& pool,
                                const std::vector<uint32_t>& ids) {
  std::vector<uint64_t> sums(ids.size());
  ChecksumPagesOnHost({layout, pool.data(), ids.data()},
                      static_cast<uint32_t>(ids.size()), sums.data());
  return sums;
}

TEST(PageChecksum, IsThatOfTheModel) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    RandomPages random(seed);
    const uint32_t capacity = random.Between(2, 6);
    const KvShape shape = random.Shape();
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << shape);
    const KvLayout layout = MakeKvLayout(shape, capacity).value();
    std::vector<std::byte> pool = random.Bytes(PoolBytes(layout, capacity));
    const std::vector<uint32_t> ids = random.Ids(capacity);
    const std::vector<uint64_t> sums = Checksums(layout, pool, ids);
    for (size_t i = 0; i < ids.size(); ++i) {
      EXPECT_EQ(sums[i],
                ModelChecksum(layout, ModelPageBytes(layout, pool, ids[i])));
    }
  }
}

TEST(PageChecksum, IsTheSameInEitherLayoutOrder) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    RandomPages random(seed);
    const uint32_t capacity = random.Between(2, 6);
    KvShape shape = random.Shape();
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << shape);
    shape.order = LayoutOrder::kLayerFirst;
    const KvLayout a = MakeKvLayout(shape, capacity).value();
    shape.order = LayoutOrder::kPageFirst;
    const KvLayout b = MakeKvLayout(shape, capacity).value();
    std::vector<std::byte> pool = random.Bytes(PoolBytes(a, capacity));
    std::vector<std::byte> turned(pool.size());
    for (uint32_t page = 0; page < capacity; ++page) {
      ModelWritePage(b, ModelPageBytes(a, pool, page), page, turned);
    }
    const std::vector<uint32_t> ids = random.Ids(capacity);
    EXPECT_EQ(Checksums(a, pool, ids), Checksums(b, turned, ids));
  }
}

TEST(PageChecksum, AnyChangedByteChangesThatOfItsPageAlone) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    RandomPages random(seed);
    const uint32_t capacity = random.Between(2, 6);
    const KvShape shape = random.Shape();
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << shape);
    const KvLayout layout = MakeKvLayout(shape, capacity).value();
    std::vector<std::byte> pool = random.Bytes(PoolBytes(layout, capacity));
    const std::vector<uint64_t> before = Checksums(layout, pool, {0, 1});
    std::vector<std::byte> page = ModelPageBytes(layout, pool, 1);
    page[random.Between(0, static_cast<uint32_t>(page.size() - 1))] ^=
        std::byte{1};
    ModelWritePage(layout, page, 1, pool);
    const std::vector<uint64_t> after = Checksums(layout, pool, {0, 1});
    EXPECT_EQ(after[0], before[0]);
    EXPECT_NE(after[1], before[1]);
  }
}

TEST(PageChecksum, DependsOnTheOrderOfWords) {
  std::set<uint64_t> sums;
  for (uint64_t place = 0; place < 1000; ++place) {
    sums.insert(MixWord(7, place) + MixWord(8, place + 1));
    sums.insert(MixWord(8, place) + MixWord(7, place + 1));
  }
  EXPECT_EQ(sums.size(), 2000u);
}

// The value must never change: checksums are compared across builds and
// devices.
TEST(PageChecksum, IsStable) {
  const KvLayout layout = MakeKvLayout({.layers = 2,
                                        .kv_planes = 2,
                                        .heads = 1,
                                        .head_size = 3,
                                        .dtype = DType::kFloat32,
                                        .page_tokens = 1,
                                        .order = LayoutOrder::kPageFirst},
                                       2)
                              .value();
  std::vector<std::byte> pool(PoolBytes(layout, 2));
  for (size_t i = 0; i < pool.size(); ++i) pool[i] = static_cast<std::byte>(i);
  uint64_t sum = 0;
  ChecksumPagesOnHost({.layout = layout, .base = pool.data()}, 1, &sum);
  EXPECT_EQ(sum, 0x5c02f8e71101fd88u);
}

}  // namespace
}  // namespace pando
