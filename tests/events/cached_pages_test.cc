#include "events/cached_pages.h"

#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "service/watches/event_messages.h"
#include "tests/events/stored_pages.h"

namespace pando {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr uint32_t kCapacity = 4096;
constexpr uint32_t kPageTokens = 2;

std::string BytesOf(const PageHash& hash) {
  return {reinterpret_cast<const char*>(hash.data()), hash.size()};
}

// Stores and removes cached pages, and collects their events.
class CachedPagesTest : public testing::Test {
 protected:
  // Stores pages whose tokens count up from `first_token`.
  std::vector<v1::Event> Store(const std::vector<PageId>& pages,
                               Token first_token, PageId parent = kPaddingPage,
                               const NamespaceKey& ns = {}) {
    pages_.Store(StoredPages(pages, kPageTokens, first_token, parent, ns));
    return Collect([&](const EventMessages::Emit& emit) {
      messages_.Stored(pages_, pages, emit);
    });
  }

  std::vector<v1::Event> Remove(const std::vector<PageId>& pages,
                                EvictionReason reason) {
    const std::vector<v1::Event> events =
        Collect([&](const EventMessages::Emit& emit) {
          messages_.Removed(pages_, pages, reason, emit);
        });
    pages_.Remove(pages);
    return events;
  }

  std::vector<v1::Event> Describe() {
    return Collect([&](const EventMessages::Emit& emit) {
      pages_.ForEachRun([&](std::span<const PageId> run) {
        messages_.Stored(pages_, run, emit);
      });
    });
  }

  CachedPages pages_{kCapacity, kPageTokens};
  EventMessages messages_;
  PageHasher hasher_;

 private:
  static std::vector<v1::Event> Collect(
      const std::function<void(const EventMessages::Emit&)>& say) {
    std::vector<v1::Event> events;
    say([&](v1::Event& event) { events.push_back(event); });
    return events;
  }
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
  const auto removed = Remove(Pages(2, 1), EvictionReason::kWatermark);
  ASSERT_THAT(removed, SizeIs(1));
  EXPECT_EQ(removed[0].removed().reason(), v1::EVICTION_REASON_WATERMARK);
  EXPECT_THAT(removed[0].removed().block_hashes(),
              ElementsAre(stored[0].stored().block_hashes(1)));
  EXPECT_THAT(Describe()[0].stored().block_hashes(), SizeIs(1));
}

TEST_F(CachedPagesTest, AfterAClearNothingIsCached) {
  Store(Pages(1, 2), 10);
  pages_.Clear();
  EXPECT_THAT(Describe(), IsEmpty());
}

TEST_F(CachedPagesTest, APageKnowsItsPlaceInItsPrompt) {
  Store(Pages(1, 2), 10);
  Store(Pages(3, 1), 14, PageId(2));
  EXPECT_EQ(pages_.ordinal(PageId(1)), 1);
  EXPECT_EQ(pages_.ordinal(PageId(3)), 3);
  EXPECT_EQ(pages_.parent(PageId(3)), PageId(2));
  EXPECT_THAT(pages_.tokens(PageId(3)), ElementsAre(14, 15));
}

TEST_F(CachedPagesTest, ADescriptionHasEveryPageOnceAndAfterItsParent) {
  std::multiset<std::string> expected;
  const auto store = [&](const std::vector<PageId>& pages, Token token,
                         PageId parent = kPaddingPage,
                         const NamespaceKey& ns = {}) {
    for (const v1::Event& event : Store(pages, token, parent, ns)) {
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
