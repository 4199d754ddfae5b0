#include "tiers/blocks/wanted_blocks.h"

#include <string_view>
#include <vector>

#include "gtest/gtest.h"

namespace pando {
namespace {

using Wanted = std::vector<uint32_t>;

// Each letter stands for the block of one key: M is in the memory, P is pending
// there, k is kept by the tier, x is in neither.
Wanted WantedOf(std::string_view keys, BlockShape shape, uint32_t window = 0) {
  std::vector<BlockPlace> answers;
  std::vector<bool> kept;
  for (char letter : keys) {
    answers.push_back(letter == 'M'   ? BlockPlace(1)
                      : letter == 'P' ? kPendingBlock
                                      : kMissingBlock);
    kept.push_back(letter == 'k');
  }
  return WantedBlocks({.kind = KindNumber(1),
                       .keys = {},
                       .before = {},
                       .shape = shape,
                       .window = window},
                      answers, kept);
}

TEST(WantedBlocksTest, OfSingleKeysEachThatIsKept) {
  EXPECT_EQ(WantedOf("MkxPk", BlockShape::kEach), (Wanted{1, 4}));
}

TEST(WantedBlocksTest, OfAPrefixThoseBeforeTheFirstThatIsNowhere) {
  EXPECT_EQ(WantedOf("MkPkxk", BlockShape::kPrefix), (Wanted{1, 3}));
  EXPECT_EQ(WantedOf("xk", BlockShape::kPrefix), Wanted{});
}

TEST(WantedBlocksTest, OfAWindowTheLastRowThatIsLongEnough) {
  EXPECT_EQ(WantedOf("kkkkxMk", BlockShape::kWindow, 3), (Wanted{1, 2, 3}));
  EXPECT_EQ(WantedOf("kkkMkk", BlockShape::kWindow, 3), (Wanted{4, 5}));
  // The row at the beginning counts if no row is long enough.
  EXPECT_EQ(WantedOf("kMxk", BlockShape::kWindow, 3), (Wanted{0}));
  EXPECT_EQ(WantedOf("xkxk", BlockShape::kWindow, 2), Wanted{});
}

TEST(WantedBlocksTest, OfACheckpointTheLastThatIsAnywhere) {
  EXPECT_EQ(WantedOf("Mkkx", BlockShape::kCheckpoint), (Wanted{2}));
  EXPECT_EQ(WantedOf("kkMx", BlockShape::kCheckpoint), Wanted{});
}

TEST(WantedBlocksTest, OfNoKeysNone) {
  EXPECT_EQ(WantedOf("", BlockShape::kPrefix), Wanted{});
  EXPECT_EQ(WantedOf("", BlockShape::kWindow, 2), Wanted{});
}

}  // namespace
}  // namespace pando
