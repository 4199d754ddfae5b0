#include "events/routers/published_blocks.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/events/stored_pages.h"

namespace pando {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr uint32_t kPageTokens = 2;
constexpr uint32_t kCapacity = 20'000;

// A copy of a StoredBlocks, which only lends its memory to a visitor.
struct Told {
  std::vector<BlockId> ids;
  std::optional<BlockId> parent;
  std::vector<Token> tokens;
  uint32_t block_tokens;
  bool are_pairs;
  std::optional<std::string> lora_name;
  std::optional<std::string> cache_salt;
};

// Returns the first 8 bytes as a big-endian number.
BlockId IdOf(const PageHash& hash) {
  BlockId id = 0;
  for (int i = 0; i < 8; ++i) id = id * 256 + hash[i];
  return id;
}

class PublishedBlocksTest : public testing::Test {
 protected:
  std::vector<Told> Store(PublishedBlocks& blocks,
                          const std::vector<PageId>& run, Token first_token,
                          PageId parent = kPaddingPage,
                          const NamespaceKey& ns = {}) {
    pages_.Store(StoredPages(run, kPageTokens, first_token, parent, ns));
    std::vector<Told> told;
    blocks.ForEachStored(pages_, run, [&](const StoredBlocks& stored) {
      told.push_back({{stored.ids.begin(), stored.ids.end()},
                      stored.parent,
                      {stored.tokens.begin(), stored.tokens.end()},
                      stored.block_tokens,
                      stored.are_pairs,
                      std::optional<std::string>(stored.lora_name),
                      std::optional<std::string>(stored.cache_salt)});
    });
    return told;
  }

  BlockId Id(uint32_t page) { return IdOf(pages_.hash(PageId(page))); }

  CachedPages pages_{kCapacity, kPageTokens};
};

TEST_F(PublishedBlocksTest, ABlockIsAPageAndIsNamedByItsHash) {
  PublishedBlocks blocks({});
  Store(blocks, Pages(1, 1), 10);
  const auto told = Store(blocks, Pages(2, 2), 12, PageId(1));
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_THAT(told[0].ids, ElementsAre(Id(2), Id(3)));
  EXPECT_EQ(told[0].parent, Id(1));
  EXPECT_THAT(told[0].tokens, ElementsAre(12, 13, 14, 15));
  EXPECT_EQ(told[0].block_tokens, kPageTokens);
  EXPECT_EQ(told[0].lora_name, std::nullopt);
  EXPECT_THAT(blocks.Removed(pages_, Pages(3, 1)), ElementsAre(Id(3)));
}

TEST_F(PublishedBlocksTest, ABlockOfSeveralPagesIsToldWhenItsLastPageIs) {
  PublishedBlocks blocks({.pages_per_block = 3});
  EXPECT_THAT(Store(blocks, Pages(1, 2), 10), IsEmpty());
  const auto told = Store(blocks, Pages(3, 5), 14, PageId(2));
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_THAT(told[0].ids, ElementsAre(Id(3), Id(6)));
  EXPECT_EQ(told[0].parent, std::nullopt);
  EXPECT_THAT(told[0].tokens,
              ElementsAre(10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21));
  EXPECT_EQ(told[0].block_tokens, 3 * kPageTokens);
  const auto more = Store(blocks, Pages(8, 2), 24, PageId(7));
  ASSERT_THAT(more, SizeIs(1));
  EXPECT_THAT(more[0].ids, ElementsAre(Id(9)));
  EXPECT_EQ(more[0].parent, Id(6));
  EXPECT_THAT(more[0].tokens, ElementsAre(22, 23, 24, 25, 26, 27));
}

TEST_F(PublishedBlocksTest, PromptsThatPartWithinABlockHaveBlocksOfTheirOwn) {
  PublishedBlocks blocks({.pages_per_block = 2});
  Store(blocks, Pages(1, 2), 10);
  const auto told = Store(blocks, Pages(3, 1), 90, PageId(1));
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_THAT(told[0].ids, ElementsAre(Id(3)));
  EXPECT_THAT(told[0].tokens, ElementsAre(10, 11, 90, 91));
}

TEST_F(PublishedBlocksTest, ABlockIsGoneWithItsLastPage) {
  PublishedBlocks blocks({.pages_per_block = 2});
  Store(blocks, Pages(1, 5), 10);
  EXPECT_THAT(blocks.Removed(pages_, Pages(5, 1)), IsEmpty());
  EXPECT_THAT(blocks.Removed(pages_, Pages(3, 2)), ElementsAre(Id(4)));
}

TEST_F(PublishedBlocksTest, SaltedAndPairedNamespacesAreOnlyToldIfAskedFor) {
  const NamespaceKey salted{"lora", "salt"};
  const NamespaceKey bigram{std::nullopt, std::nullopt, true};
  PublishedBlocks plain({});
  PublishedBlocks all({.salted = true, .bigram = true});

  EXPECT_THAT(Store(plain, Pages(1, 1), 10, kPaddingPage, salted), IsEmpty());
  EXPECT_THAT(Store(plain, Pages(2, 1), 10, kPaddingPage, bigram), IsEmpty());
  EXPECT_THAT(plain.Removed(pages_, Pages(1, 2)), IsEmpty());

  const auto told = Store(all, Pages(3, 1), 20, kPaddingPage, salted);
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(told[0].lora_name, "lora");
  EXPECT_EQ(told[0].cache_salt, "salt");
  EXPECT_THAT(all.Removed(pages_, Pages(3, 1)), ElementsAre(Id(3)));
}

TEST_F(PublishedBlocksTest, BlocksOfPairsHaveOneTokenMoreAtTheEnd) {
  PublishedBlocks blocks({.pages_per_block = 2, .bigram = true});
  const auto told = Store(blocks, Pages(1, 4), 10, kPaddingPage,
                          {std::nullopt, std::nullopt, true});
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_TRUE(told[0].are_pairs);
  EXPECT_THAT(told[0].ids, ElementsAre(Id(2), Id(4)));
  EXPECT_THAT(told[0].tokens, ElementsAre(10, 11, 12, 13, 14, 15, 16, 17, 18));
}

// Routers would mistake blocks of such a namespace for those of the namespace
// without a key or salt.
TEST_F(PublishedBlocksTest, NamespacesWithAnEmptyKeyOrSaltAreNeverTold) {
  PublishedBlocks all({.salted = true, .bigram = true});
  EXPECT_FALSE(all.Includes({"", std::nullopt}));
  EXPECT_FALSE(all.Includes({std::nullopt, ""}));
  EXPECT_TRUE(all.Includes({std::nullopt, "salt"}));
}

TEST_F(PublishedBlocksTest, LongRunsAreToldInPiecesOfABoundedSize) {
  PublishedBlocks blocks({});
  const auto told = Store(blocks, Pages(1, 10'000), 0);
  size_t total = 0;
  std::optional<BlockId> last;
  for (const Told& piece : told) {
    EXPECT_LE(piece.tokens.size(), 8'192);
    EXPECT_EQ(piece.parent, last);
    EXPECT_EQ(piece.tokens.size(), piece.ids.size() * kPageTokens);
    EXPECT_EQ(piece.tokens.front(), total * kPageTokens);
    total += piece.ids.size();
    last = piece.ids.back();
  }
  EXPECT_EQ(total, 10'000);
  EXPECT_EQ(last, Id(10'000));
}

}  // namespace
}  // namespace pando
