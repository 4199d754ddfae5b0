#include "tiers/blocks/block_name.h"

#include <set>
#include <string>

#include "gtest/gtest.h"

namespace pando {
namespace {

TEST(BlockNameTest, AShortKeyIsItsOwnName) {
  const std::string key(32, 'k');
  const PageHash name = TierKeyOf(key);
  EXPECT_EQ(std::string(name.begin(), name.end()), key);
  EXPECT_EQ(SealedKeyOf(key), name);
}

// Each byte of a long key counts, even if all other bytes are equal.
TEST(BlockNameTest, LongKeysThatDifferInAByteHaveOtherNames) {
  std::set<PageHash> names;
  std::set<PageHash> sealed;
  for (size_t i = 0; i < kMaxKeyBytes; ++i) {
    for (int value = 1; value < 256; ++value) {
      std::string key(kMaxKeyBytes, '\0');
      key[i] = static_cast<char>(value);
      names.insert(TierKeyOf(key));
      sealed.insert(SealedKeyOf(key));
    }
  }
  EXPECT_EQ(names.size(), 255 * kMaxKeyBytes);
  EXPECT_EQ(sealed.size(), 255 * kMaxKeyBytes);
}

}  // namespace
}  // namespace pando
