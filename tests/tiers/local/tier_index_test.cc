#include "tiers/local/tier_index.h"

#include <algorithm>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "tests/tiers/hashes.h"

namespace pando {
namespace {

constexpr uint64_t kNs = 5;  // the digest of a namespace

bool Store(TierIndex& index, size_t number) {
  if (!index.BeginStore(HashOf(number), kNs).has_value()) return false;
  index.EndStore(HashOf(number), number);
  return true;
}

bool Has(const TierIndex& index, size_t number) {
  return index.CountStored(Hashes(number, 1)) == 1;
}

TEST(TierIndexTest, ABlockIsFoundOnceItIsWritten) {
  TierIndex index(2);
  ASSERT_TRUE(index.BeginStore(HashOf(1), kNs).has_value());
  EXPECT_FALSE(Has(index, 1));
  EXPECT_FALSE(index.BeginLoad(HashOf(1)).has_value());
  index.EndStore(HashOf(1), 77);
  EXPECT_TRUE(Has(index, 1));
  const auto place = index.BeginLoad(HashOf(1));
  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->checksum, 77u);
  index.EndLoad(HashOf(1), true);
}

TEST(TierIndexTest, ABlockIsStoredOnce) {
  TierIndex index(2);
  ASSERT_TRUE(index.BeginStore(HashOf(1), kNs).has_value());
  EXPECT_FALSE(index.BeginStore(HashOf(1), kNs).has_value());
  index.EndStore(HashOf(1), 1);
  EXPECT_FALSE(index.BeginStore(HashOf(1), kNs).has_value());
  EXPECT_EQ(index.stored_blocks(), 1u);
}

TEST(TierIndexTest, ABlockThatWasNotWrittenLeavesItsSlot) {
  TierIndex index(1);
  ASSERT_TRUE(index.BeginStore(HashOf(1), kNs).has_value());
  EXPECT_FALSE(index.BeginStore(HashOf(2), kNs).has_value());
  index.AbandonStore(HashOf(1));
  EXPECT_TRUE(Store(index, 2));
}

TEST(TierIndexTest, PromptsLoseTheirEndsFirst) {
  constexpr size_t kPages = 6;
  TierIndex index(kPages);
  for (size_t i = 0; i < kPages; ++i) ASSERT_TRUE(Store(index, i));
  index.Touch(Hashes(0, kPages));
  for (size_t i = 0; i < kPages; ++i) {
    EXPECT_EQ(index.CountStored(Hashes(0, kPages)), kPages - i);
    ASSERT_TRUE(Store(index, 100 + i));
  }
}

TEST(TierIndexTest, WhatIsBeingReadStaysWhereItIs) {
  TierIndex index(2);
  ASSERT_TRUE(Store(index, 1));
  ASSERT_TRUE(Store(index, 2));
  ASSERT_TRUE(index.BeginLoad(HashOf(1)).has_value());
  ASSERT_TRUE(Store(index, 3));
  EXPECT_TRUE(Has(index, 1));
  EXPECT_FALSE(Has(index, 2));
  ASSERT_TRUE(index.BeginLoad(HashOf(3)).has_value());
  EXPECT_FALSE(Store(index, 4));
}

TEST(TierIndexTest, ADamagedBlockIsForgottenWhenItsLastReaderEnds) {
  TierIndex index(1);
  ASSERT_TRUE(Store(index, 1));
  ASSERT_TRUE(index.BeginLoad(HashOf(1)).has_value());
  ASSERT_TRUE(index.BeginLoad(HashOf(1)).has_value());
  index.EndLoad(HashOf(1), false);
  EXPECT_FALSE(Has(index, 1));
  EXPECT_FALSE(index.BeginLoad(HashOf(1)).has_value());
  EXPECT_FALSE(Store(index, 1));
  index.EndLoad(HashOf(1), true);
  EXPECT_TRUE(Store(index, 1));
}

TEST(TierIndexTest, RestoredBlocksKeepTheirSlots) {
  TierIndex index(3);
  EXPECT_TRUE(index.Restore(HashOf(1), kNs, {2, 11}));
  EXPECT_TRUE(index.Restore(HashOf(2), kNs, {0, 12}));
  EXPECT_FALSE(index.Restore(HashOf(1), kNs, {1, 13}));
  EXPECT_EQ(index.BeginLoad(HashOf(1))->slot, 2u);
  EXPECT_EQ(index.BeginStore(HashOf(3), kNs), 1u);
  // The block that was restored first is evicted first, unless it is being
  // read.
  EXPECT_EQ(index.BeginStore(HashOf(4), kNs), 0u);
}

TEST(TierIndexTest, WhatIsForgottenKeepsItsSlotUntilItIsErased) {
  TierIndex index(2);
  ASSERT_TRUE(Store(index, 1));
  ASSERT_TRUE(index.Restore(HashOf(2), kNs + 1, {1, 0}));
  const auto forgotten = index.ForgetAll(kNs);
  ASSERT_EQ(forgotten.size(), 1u);
  EXPECT_EQ(forgotten[0].hash, HashOf(1));
  EXPECT_EQ(forgotten[0].slot, 0u);
  EXPECT_FALSE(Has(index, 1));
  EXPECT_TRUE(Has(index, 2));
  EXPECT_TRUE(index.ForgetAll(kNs).empty());
  // The block of the other namespace is evicted to make room.
  EXPECT_EQ(index.BeginStore(HashOf(3), kNs), 1u);
  EXPECT_FALSE(index.BeginStore(HashOf(4), kNs).has_value());
  index.EndLoad(HashOf(1), false);
  EXPECT_EQ(index.BeginStore(HashOf(4), kNs), 0u);
}

TEST(TierIndexTest, WhatIsForgottenWhileItIsWrittenIsNotFound) {
  TierIndex index(1);
  ASSERT_TRUE(index.BeginStore(HashOf(1), kNs).has_value());
  EXPECT_TRUE(index.ForgetAll(std::nullopt).empty());
  EXPECT_FALSE(index.EndStore(HashOf(1), 11));
  EXPECT_FALSE(Has(index, 1));
  index.AbandonStore(HashOf(1));
  EXPECT_TRUE(Store(index, 1));
}

TEST(TierIndexTest, ABlockIsToldOfOnceWhileItIsStored) {
  TierIndex index(2);
  EXPECT_FALSE(index.Tell(HashOf(1)));
  ASSERT_TRUE(index.BeginStore(HashOf(1), kNs).has_value());
  EXPECT_FALSE(index.Tell(HashOf(1)));
  index.EndStore(HashOf(1), 1);
  EXPECT_TRUE(index.Tell(HashOf(1)));
  EXPECT_FALSE(index.Tell(HashOf(1)));
  ASSERT_TRUE(index.Restore(HashOf(2), kNs, {1, 0}));
  EXPECT_TRUE(index.Tell(HashOf(2)));
  EXPECT_TRUE(index.TakeGone().empty());
}

TEST(TierIndexTest, WhatWasToldOfIsGoneOnceHoweverItGoes) {
  TierIndex index(3);
  for (const size_t number : {1, 2, 3}) {
    ASSERT_TRUE(Store(index, number));
    ASSERT_TRUE(index.Tell(HashOf(number)));
  }
  ASSERT_TRUE(Store(index, 4));  // takes the slot of 1; is never reported
  EXPECT_EQ(index.TakeGone(), Hashes(1, 1));
  ASSERT_TRUE(index.BeginLoad(HashOf(2)).has_value());
  index.EndLoad(HashOf(2), false);
  EXPECT_EQ(index.TakeGone(), Hashes(2, 1));
  EXPECT_EQ(index.ForgetAll(std::nullopt).size(), 2u);
  EXPECT_EQ(index.TakeGone(), Hashes(3, 1));
  index.EndLoad(HashOf(3), false);
  index.EndLoad(HashOf(4), false);
  EXPECT_TRUE(index.TakeGone().empty());
  ASSERT_TRUE(Store(index, 1));
  EXPECT_TRUE(index.Tell(HashOf(1)));
}

// Compares TierIndex with a plain list of the stored blocks, the oldest use
// first.
class ModelTest : public testing::TestWithParam<uint32_t> {};

TEST_P(ModelTest, ManyOperationsAgreeWithAPlainList) {
  constexpr uint32_t kSlots = 7;
  constexpr size_t kBlocks = 12;
  SCOPED_TRACE(GetParam());
  std::mt19937 random(GetParam());
  TierIndex index(kSlots);
  std::vector<size_t> stored;
  std::set<size_t> writing;
  for (int step = 0; step < 5'000; ++step) {
    const size_t number = random() % kBlocks;
    const auto known = std::ranges::find(stored, number);
    switch (random() % 4) {
      case 0: {
        const bool is_known = known != stored.end() || writing.contains(number);
        const bool is_full = writing.size() == kSlots;
        const bool begins = index.BeginStore(HashOf(number), kNs).has_value();
        ASSERT_EQ(begins, !is_known && !is_full);
        if (!begins) break;
        if (stored.size() + writing.size() == kSlots) {
          stored.erase(stored.begin());
        }
        writing.insert(number);
        break;
      }
      case 1:
        if (!writing.erase(number)) break;
        if (random() % 3 == 0) {
          index.AbandonStore(HashOf(number));
        } else {
          index.EndStore(HashOf(number), number);
          stored.push_back(number);
        }
        break;
      case 2: {
        const size_t count = random() % 4;
        index.Touch(Hashes(number, count));
        for (size_t i = count; i-- > 0;) {
          const auto it = std::ranges::find(stored, number + i);
          if (it == stored.end()) continue;
          stored.erase(it);
          stored.push_back(number + i);
        }
        break;
      }
      case 3: {
        const auto place = index.BeginLoad(HashOf(number));
        ASSERT_EQ(place.has_value(), known != stored.end());
        if (!place.has_value()) break;
        ASSERT_EQ(place->checksum, number);
        const bool is_intact = random() % 4 > 0;
        index.EndLoad(HashOf(number), is_intact);
        if (!is_intact) stored.erase(known);
        break;
      }
    }
    ASSERT_EQ(index.stored_blocks(), stored.size());
    for (size_t i = 0; i < kBlocks; ++i) {
      ASSERT_EQ(Has(index, i), std::ranges::find(stored, i) != stored.end());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, ModelTest, testing::Range(0u, 20u));

}  // namespace
}  // namespace pando
