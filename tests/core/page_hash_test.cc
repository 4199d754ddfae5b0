#include "core/nodes/page_hash.h"

#include <set>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"

namespace pando {
namespace {

std::string Hex(const PageHash& hash) {
  return absl::BytesToHexString(absl::string_view(
      reinterpret_cast<const char*>(hash.data()), hash.size()));
}

// Another implementation of SHA-256 computed the expected values, from the text
// of docs/protocol.md.

TEST(PageHashTest, SeedsAreThoseOfTheProtocol) {
  PageHasher hasher;
  EXPECT_EQ(Hex(hasher.Seed({})),
            "e784c9b499b1fc2d1b24020d49ddff09cb287c5d54b3edd47ee0c40d019035e1");
  EXPECT_EQ(Hex(hasher.Seed({"lora-1", "salt"})),
            "eae9db8a79aac5165e9fe44bcd956e638de2935e31de0fa04d75e913f7c3fd37");
  EXPECT_EQ(Hex(hasher.Seed({std::nullopt, "", true})),
            "cf7f4d156cd4af5a085ed4654704ba0904237137e1cdead4d9ff220081174a94");
}

TEST(PageHashTest, PagesAreThoseOfTheProtocol) {
  PageHasher hasher;
  const PageHash first =
      hasher.Next(hasher.Seed({}), std::vector<Token>{1, 2, 3, 4}, false);
  EXPECT_EQ(Hex(first),
            "91fbd30be5058c558038da2b466c0610880133fb40462d3beadb908bc095d238");
  EXPECT_EQ(
      Hex(hasher.Next(first, std::vector<Token>{5, 6, 7, 0xffffffff}, false)),
      "da851997789ff6968b75636900698c040a574901d43d2ab731e802e1e4fb21c7");
}

TEST(PageHashTest, APageOfPairsContributesBothTokensOfEach) {
  PageHasher hasher;
  const PageHash seed = hasher.Seed({std::nullopt, "", true});
  EXPECT_EQ(Hex(hasher.Next(seed, std::vector<Token>{1, 2, 3, 4, 5}, true)),
            "401a25e3370ecb91a6df1c95a8229a7de64175acd84a6353700c33f98bdbdc09");
}

TEST(PageHashTest, NamespacesDoNotShareSeeds) {
  PageHasher hasher;
  std::set<PageHash> seeds;
  for (const bool bigram : {false, true}) {
    seeds.insert(hasher.Seed({std::nullopt, std::nullopt, bigram}));
    seeds.insert(hasher.Seed({"", std::nullopt, bigram}));
    seeds.insert(hasher.Seed({std::nullopt, "", bigram}));
    seeds.insert(hasher.Seed({"", "", bigram}));
    seeds.insert(hasher.Seed({"ab", "c", bigram}));
    seeds.insert(hasher.Seed({"a", "bc", bigram}));
  }
  EXPECT_EQ(seeds.size(), 12u);
}

TEST(PageHashTest, AHashDependsOnWhatIsBeforeThePage) {
  PageHasher hasher;
  const std::vector<Token> page = {1, 2, 3, 4};
  const PageHash first = hasher.Next(hasher.Seed({}), page, false);
  EXPECT_NE(hasher.Next(first, page, false), first);
}

}  // namespace
}  // namespace pando
