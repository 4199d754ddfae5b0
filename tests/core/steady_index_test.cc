// Compares a hash table that never stalls with a naive one.

#include "core/nodes/steady_index.h"

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace pando {
namespace {

struct Entry {
  uint64_t hash;
  uint32_t number;
};

uint32_t FindNumber(const SteadyIndex& index, const Entry& entry) {
  return index.Find(entry.hash,
                    [&](uint32_t number) { return number == entry.number; });
}

class SteadyIndexTest : public testing::TestWithParam<uint64_t> {};

TEST_P(SteadyIndexTest, FindsWhatWasAddedAndNotRemoved) {
  std::mt19937_64 random(GetParam());
  SteadyIndex index;
  std::vector<Entry> there;
  std::vector<Entry> removed;
  // Up to 100 numbers share one of eight hashes, so that they collide.
  size_t with_equal_hash = 0;
  for (uint32_t number = 0; number < 40'000; ++number) {
    const bool has_equal_hash = with_equal_hash < 100 && random() % 8 == 0;
    with_equal_hash += has_equal_hash;
    there.push_back({has_equal_hash ? random() % 8 : random(), number});
    index.Add(there.back().hash, number);
    if (random() % 3 == 0) {
      Entry& entry = there[random() % there.size()];
      const uint32_t other = (1u << 20) + number;
      index.Replace(entry.hash, entry.number, other);
      removed.push_back(entry);
      entry.number = other;
    }
    if (random() % 3 != 0) continue;
    std::swap(there[random() % there.size()], there.back());
    index.Remove(there.back().hash, there.back().number);
    removed.push_back(there.back());
    there.pop_back();
  }
  EXPECT_EQ(index.size(), there.size());
  for (const Entry& entry : there) {
    ASSERT_EQ(FindNumber(index, entry), entry.number);
  }
  for (const Entry& entry : removed) {
    ASSERT_EQ(FindNumber(index, entry), SteadyIndex::kNone);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, SteadyIndexTest,
                         testing::Range<uint64_t>(0, 5));

// The table grows by one bucket at a time, and moves only the numbers of one
// other bucket.
TEST(SteadyIndexGrowthTest, GrowsByABucketAtATime) {
  std::mt19937_64 random(1);
  SteadyIndex index;
  size_t buckets = index.buckets();
  for (uint32_t number = 0; number < 300'000; ++number) {
    index.Add(random(), number);
    ASSERT_LE(index.buckets(), buckets + 1);
    buckets = index.buckets();
  }
  EXPECT_GT(buckets * SteadyIndex::kCells, 300'000u);
  EXPECT_LT(buckets * SteadyIndex::kCells, 2 * 300'000u);
}

// If the table grew here, a cache that is always full would reorganize its
// table now and then.
TEST(SteadyIndexGrowthTest, DoesNotGrowWhileAsManyLeaveAsCome) {
  std::mt19937_64 random(1);
  SteadyIndex index;
  std::vector<uint64_t> hashes(100'000);
  for (uint32_t number = 0; number < hashes.size(); ++number) {
    index.Add(hashes[number] = random(), number);
  }
  const size_t buckets = index.buckets();
  for (uint32_t round = 0; round < 5; ++round) {
    for (uint32_t number = 0; number < hashes.size(); ++number) {
      index.Remove(hashes[number], number);
      index.Add(hashes[number] = random(), number);
    }
  }
  EXPECT_LT(index.buckets(), buckets + buckets / 2);
}

}  // namespace
}  // namespace pando
