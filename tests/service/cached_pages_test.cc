#include "service/events/cached_pages.h"

#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pando {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr uint32_t kCapacity = 4096;
constexpr uint32_t kPageTokens = 2;

std::vector<PageId> Pages(uint32_t first, uint32_t count) {
  std::vector<PageId> pages;
  for (uint32_t i = 0; i < count; ++i) pages.emplace_back(first + i);
  return pages;
}

std::string BytesOf(const PageHash& hash) {
  return {reinterpret_cast<const char*>(hash.data()), hash.size()};
}

// Sets of hashes, as somebody keeps them who follows the events.
class CachedPagesTest : public testing::Test {
 protected:
  std::vector<v1::Event> Apply(const RawEvent& event) {
    std::vector<v1::Event> emitted;
    pages_.Apply(event, [&](v1::Event& e) { emitted.push_back(e); });
    return emitted;
  }

  // Tokens count up from `first_token`.
  std::vector<v1::Event> Store(std::vector<PageId> pages, uint32_t first_token,
                               PageId parent = kPaddingPage,
                               const NamespaceKey& ns = {}) {
    std::vector<Token> tokens(pages.size() * kPageTokens + (ns.bigram ? 1 : 0));
    std::iota(tokens.begin(), tokens.end(), first_token);
    const auto count = static_cast<uint32_t>(pages.size());
    return Apply(PagesStored{.segment = SegmentRef::Copy(tokens, pages),
                             .first_page = 0,
                             .page_count = count,
                             .parent = parent,
                             .ns = std::make_shared<NamespaceKey>(ns)});
  }

  std::vector<v1::Event> Describe() {
    std::vector<v1::Event> emitted;
    pages_.Describe([&](v1::Event& e) { emitted.push_back(e); });
    return emitted;
  }

  CachedPages pages_{kCapacity, kPageTokens};
  PageHasher hasher_;
};

TEST_F(CachedPagesTest, StoredPagesAreNamedByTheChainOfTheirHashes) {
  const auto events = Store(Pages(1, 2), 10);
  ASSERT_THAT(events, SizeIs(1));
  const v1::BlocksStored& stored = events[0].stored();
  const PageHash first =
      hasher_.Next(hasher_.Seed({}), std::vector<Token>{10, 11}, false);
  const PageHash second =
      hasher_.Next(first, std::vector<Token>{12, 13}, false);
  EXPECT_THAT(stored.block_hashes(),
              ElementsAre(BytesOf(first), BytesOf(second)));
  EXPECT_THAT(stored.parent_block_hash(), IsEmpty());
  EXPECT_THAT(stored.tokens(), ElementsAre(10, 11, 12, 13));
  EXPECT_EQ(stored.page_tokens(), kPageTokens);
  EXPECT_FALSE(stored.has_extra_key());
  EXPECT_FALSE(stored.has_cache_salt());
  EXPECT_FALSE(stored.bigram());
}

TEST_F(CachedPagesTest, PagesAfterOthersNameTheirParent) {
  const auto first = Store(Pages(1, 2), 10);
  const auto second = Store(Pages(3, 1), 14, PageId(2));
  EXPECT_EQ(second[0].stored().parent_block_hash(),
            first[0].stored().block_hashes(1));
  EXPECT_EQ(Describe()[0].stored().block_hashes(2),
            second[0].stored().block_hashes(0));
}

TEST_F(CachedPagesTest, ANamespaceShowsItsKeyAndNotItsSalt) {
  const auto events = Store(Pages(1, 1), 10, kPaddingPage, {"lora", "secret"});
  EXPECT_EQ(events[0].stored().extra_key(), "lora");
  EXPECT_TRUE(events[0].stored().has_cache_salt());
  EXPECT_EQ(events[0].SerializeAsString().find("secret"), std::string::npos);
}

TEST_F(CachedPagesTest, PagesOfPairsHaveOneTokenMore) {
  const NamespaceKey ns{std::nullopt, std::nullopt, true};
  const auto events = Store(Pages(1, 2), 10, kPaddingPage, ns);
  const v1::BlocksStored& stored = events[0].stored();
  EXPECT_TRUE(stored.bigram());
  EXPECT_THAT(stored.tokens(), ElementsAre(10, 11, 12, 13, 14));
  const PageHash first =
      hasher_.Next(hasher_.Seed(ns), std::vector<Token>{10, 11, 12}, true);
  EXPECT_EQ(stored.block_hashes(0), BytesOf(first));
}

TEST_F(CachedPagesTest, LongRunsAreToldInSeveralEvents) {
  const auto events = Store(Pages(1, 2500), 10);
  ASSERT_THAT(events, SizeIs(3));
  EXPECT_THAT(events[0].stored().block_hashes(), SizeIs(1000));
  EXPECT_THAT(events[2].stored().block_hashes(), SizeIs(500));
  EXPECT_EQ(events[1].stored().parent_block_hash(),
            events[0].stored().block_hashes(999));
  EXPECT_EQ(events[1].stored().tokens(0), 10 + 1000 * kPageTokens);
}

TEST_F(CachedPagesTest, RemovedPagesAreNamedByTheirHashes) {
  const auto stored = Store(Pages(1, 2), 10);
  const auto removed =
      Apply(PagesRemoved{Pages(2, 1), EvictionReason::kWatermark});
  ASSERT_THAT(removed, SizeIs(1));
  EXPECT_EQ(removed[0].removed().reason(), v1::EVICTION_REASON_WATERMARK);
  EXPECT_THAT(removed[0].removed().block_hashes(),
              ElementsAre(stored[0].stored().block_hashes(1)));
  EXPECT_THAT(Describe()[0].stored().block_hashes(), SizeIs(1));
}

TEST_F(CachedPagesTest, AfterAClearNothingIsCached) {
  Store(Pages(1, 2), 10);
  const auto cleared = Apply(AllCleared{});
  ASSERT_THAT(cleared, SizeIs(1));
  EXPECT_TRUE(cleared[0].has_cleared());
  EXPECT_THAT(Describe(), IsEmpty());
}

TEST_F(CachedPagesTest, ADescriptionHasEveryPageOnceAndAfterItsParent) {
  std::multiset<std::string> expected;
  const auto store = [&](std::vector<PageId> pages, uint32_t token,
                         PageId parent = kPaddingPage,
                         const NamespaceKey& ns = {}) {
    for (const v1::Event& event : Store(std::move(pages), token, parent, ns)) {
      const auto& hashes = event.stored().block_hashes();
      expected.insert(hashes.begin(), hashes.end());
    }
  };
  store(Pages(1, 3), 10);
  store(Pages(10, 2), 100, PageId(3));
  store(Pages(20, 2), 200, PageId(3));
  store(Pages(30, 1200), 300, PageId(1));
  store(Pages(2000, 2), 10, kPaddingPage, {"lora", std::nullopt});

  std::multiset<std::string> told;
  for (const v1::Event& event : Describe()) {
    const v1::BlocksStored& stored = event.stored();
    if (!stored.parent_block_hash().empty()) {
      EXPECT_TRUE(told.contains(stored.parent_block_hash()));
    }
    told.insert(stored.block_hashes().begin(), stored.block_hashes().end());
  }
  EXPECT_EQ(told, expected);
}

}  // namespace
}  // namespace pando
