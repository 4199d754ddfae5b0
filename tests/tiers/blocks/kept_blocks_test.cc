#include "tiers/blocks/kept_blocks.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pando {
namespace {

constexpr uint64_t kRoom = 1'000;
const std::string kKey(8, 'k');

// A generation of the kind with this identity.
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

bool Store(KeptBlocks& kept, const KnownKind& kind) {
  const BlockName name = kind.NameOf(kKey);
  std::vector<BlockName> evicted;
  return kept.BeginStore(kind, name, 1, evicted) && kept.EndStore(name, true);
}

TEST(KeptBlocksTest, WhatWasCopiedBeforeAResetIsNotStoredAfterIt) {
  KeptBlocks kept(kRoom);
  kept.Know(GenerationOf("a", 1));
  const auto old = kept.Find(KindNumber(1));
  EXPECT_TRUE(Store(kept, *old));
  kept.Renew(GenerationOf("a", 2));
  const auto renewed = kept.Find(KindNumber(2));
  EXPECT_FALSE(Store(kept, *old));
  EXPECT_THAT(kept.Have(*renewed, kKey), testing::ElementsAre(false));
  EXPECT_EQ(kept.totals().bytes, 0u);
  EXPECT_TRUE(Store(kept, *renewed));
  EXPECT_THAT(kept.Have(*renewed, kKey), testing::ElementsAre(true));
}

}  // namespace
}  // namespace pando
