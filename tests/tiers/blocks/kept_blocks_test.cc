#include "tiers/blocks/kept_blocks.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pando {
namespace {

constexpr uint64_t kRoom = 1'000;
const std::string kKey(8, 'k');

// Returns the generation `number` of the kind with this identity.
BlockKind GenerationOf(const std::string& identity, uint64_t number) {
  BlockKind kind;
  kind.number = KindNumber(number);
  kind.shard_stride = 4'096;
  kind.spec.identity = identity;
  kind.spec.key_bytes = static_cast<uint32_t>(kKey.size());
  kind.spec.shard_bytes = 4'096;
  kind.spec.shards = 1;
  return kind;
}

using Begun = KeptBlocks::Begun;

Begun Begin(KeptBlocks& kept, const KnownKind& kind, uint64_t bytes = 1) {
  std::vector<BlockName> evicted;
  return kept.BeginStore(kind, kind.NameOf(kKey), bytes, evicted);
}

bool Store(KeptBlocks& kept, const KnownKind& kind) {
  return Begin(kept, kind) == Begun::kYes &&
         kept.EndStore(kind.NameOf(kKey), true);
}

bool Has(const KeptBlocks& kept, const KnownKind& kind) {
  const BlockName name = kind.NameOf(kKey);
  return kept.Have(kind, {&name, 1}).front();
}

TEST(KeptBlocksTest, WhatWasCopiedBeforeAResetIsNotStoredAfterIt) {
  KeptBlocks kept(kRoom, kRoom);
  kept.Know(GenerationOf("a", 1));
  const auto old = kept.Find(KindNumber(1));
  EXPECT_TRUE(Store(kept, *old));
  kept.Renew(GenerationOf("a", 2));
  const auto renewed = kept.Find(KindNumber(2));
  EXPECT_FALSE(Store(kept, *old));
  EXPECT_FALSE(Has(kept, *renewed));
  EXPECT_TRUE(Store(kept, *renewed));
  EXPECT_TRUE(Has(kept, *renewed));
}

TEST(KeptBlocksTest, FilesOfAKindThatWasRenewedCountUntilTheyAreFreed) {
  KeptBlocks kept(kRoom, kRoom);
  kept.Know(GenerationOf("a", 1));
  EXPECT_TRUE(Store(kept, *kept.Find(KindNumber(1))));
  EXPECT_EQ(kept.Renew(GenerationOf("a", 2)), 1u);
  EXPECT_EQ(kept.totals().bytes, 1u);
  EXPECT_EQ(kept.totals().blocks, 0u);
  EXPECT_FALSE(kept.HasRoom(kRoom));
  kept.Freed(1);
  EXPECT_TRUE(kept.HasRoom(kRoom));
}

TEST(KeptBlocksTest, RoomForALargeBlockIsMadeInPieces) {
  KeptBlocks kept(kRoom, kRoom);
  kept.Know(GenerationOf("a", 1));
  const auto small = kept.Find(KindNumber(1));
  for (uint8_t i = 0; i < 250; ++i) {
    for (uint8_t j = 0; j < 4; ++j) {
      const BlockName name = small->NameOf(std::string(7, i) + char(j));
      std::vector<BlockName> evicted;
      ASSERT_EQ(kept.BeginStore(*small, name, 1, evicted), Begun::kYes);
      kept.EndStore(name, true);
    }
  }
  kept.Know(GenerationOf("b", 2));
  const auto large = kept.Find(KindNumber(2));
  size_t pieces = 0;
  while (Begin(kept, *large, kRoom) == Begun::kAgain) ++pieces;
  EXPECT_EQ(pieces, kRoom / KeptBlocks::kMostNames);
  EXPECT_EQ(kept.totals().bytes, kRoom);
}

TEST(KeptBlocksTest, OfTooManyKindsThoseUsedLeastRecentlyAreForgotten) {
  KeptBlocks kept(kRoom, kRoom);
  for (uint64_t i = 1; i <= KeptBlocks::kMostKnownKinds; ++i) {
    kept.Know(GenerationOf(std::to_string(i), i));
  }
  const auto forgotten = kept.Find(KindNumber(2));
  EXPECT_NE(kept.Use(KindNumber(1)), nullptr);
  kept.Know(GenerationOf("another", KeptBlocks::kMostKnownKinds + 1));
  EXPECT_NE(kept.Find(KindNumber(1)), nullptr);
  EXPECT_EQ(kept.Find(KindNumber(2)), nullptr);
  EXPECT_EQ(kept.kinds().size(), KeptBlocks::kMostKnownKinds);
  // A block of a forgotten kind is not stored, because the kind may have been
  // reset after the block was copied.
  EXPECT_FALSE(Store(kept, *forgotten));
  kept.Know(GenerationOf("2", KeptBlocks::kMostKnownKinds + 2));
  EXPECT_TRUE(Store(kept, *kept.Find(KindNumber(8'194))));
}

TEST(KeptBlocksTest, WhatIsRestoredFitsAndIsOfNoRenewedKind) {
  KeptBlocks kept(10, kRoom);
  kept.Know(GenerationOf("a", 1));
  kept.Know(GenerationOf("b", 2));
  const auto a = kept.Find(KindNumber(1));
  const auto b = kept.Find(KindNumber(2));
  kept.Renew(GenerationOf("b", 3));
  EXPECT_TRUE(kept.Restore(a->NameOf(kKey), 6));
  EXPECT_FALSE(kept.Restore(a->NameOf(kKey), 1));
  EXPECT_FALSE(kept.Restore(a->NameOf("other..."), 6));
  EXPECT_FALSE(kept.Restore(b->NameOf(kKey), 1));
  kept.EndStock();
  EXPECT_TRUE(kept.Restore(b->NameOf(kKey), 1));
  EXPECT_EQ(kept.totals().bytes, 7u);
}

}  // namespace
}  // namespace pando
