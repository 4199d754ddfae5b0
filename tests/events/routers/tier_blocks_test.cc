#include "events/routers/tier_blocks.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/events/routers/listed_changes.h"

namespace pando {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;

constexpr uint32_t kPageTokens = 2;

struct Told {
  std::vector<BlockId> ids;
  std::optional<BlockId> parent;
  std::vector<Token> tokens;
  uint32_t block_tokens;
  std::optional<std::string> lora_name;
};

class TierBlocksTest : public testing::Test {
 protected:
  void Follow(PublishedBlocks::Config config,
              KvMedium medium = KvMedium::kStorage) {
    rules_ = std::make_unique<PublishedBlocks>(config);
    blocks_ = std::make_unique<TierBlocks>(medium, &tier_, rules_.get());
  }

  std::vector<Told> TellSome() {
    std::vector<Told> told;
    blocks_->TellSome([&](const StoredBlocks& stored) {
      EXPECT_EQ(stored.medium, blocks_->medium());
      told.push_back({{stored.ids.begin(), stored.ids.end()},
                      stored.parent,
                      {stored.tokens.begin(), stored.tokens.end()},
                      stored.block_tokens,
                      std::optional<std::string>(stored.lora_name)});
    });
    return told;
  }
  // Calls TellSome until there is nothing more to report.
  std::vector<Told> TellAll() {
    std::vector<Told> all;
    while (true) {
      std::vector<Told> some = TellSome();
      if (some.empty()) return all;
      all.insert(all.end(), some.begin(), some.end());
    }
  }
  std::vector<BlockId> TakeGone() {
    const std::span<const BlockId> gone = blocks_->TakeChanges();
    return {gone.begin(), gone.end()};
  }

  ListedChanges tier_{kPageTokens};
  std::unique_ptr<PublishedBlocks> rules_;
  std::unique_ptr<TierBlocks> blocks_;
};

TEST_F(TierBlocksTest, WhatIsStoredIsToldAndWhatIsGoneIsTakenBack) {
  Follow({});
  tier_.StorePrompt(10, 3, {"lora", std::nullopt});
  EXPECT_THAT(TakeGone(), IsEmpty());
  const std::vector<Told> told = TellSome();
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_THAT(told[0].ids, ElementsAre(11, 12, 13));
  EXPECT_EQ(told[0].parent, std::nullopt);
  EXPECT_THAT(told[0].tokens, ElementsAre(22, 23, 24, 25, 26, 27));
  EXPECT_EQ(told[0].block_tokens, kPageTokens);
  EXPECT_EQ(told[0].lora_name, "lora");
  EXPECT_THAT(TellSome(), IsEmpty());
  tier_.Remove(12);
  EXPECT_THAT(TakeGone(), ElementsAre(12));
  EXPECT_THAT(TakeGone(), IsEmpty());
}

TEST_F(TierBlocksTest, ABlockWhoseBeginningIsNotThereNamesItAllTheSame) {
  Follow({});
  tier_.Store(7, 6, 3);
  TakeGone();
  const std::vector<Told> told = TellSome();
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(told[0].parent, 6);
}

TEST_F(TierBlocksTest, WhatIsGoneBeforeItWasToldIsNeverMentioned) {
  Follow({});
  tier_.StorePrompt(10, 2);
  tier_.Remove(12);
  EXPECT_THAT(TakeGone(), IsEmpty());
  const std::vector<Told> told = TellSome();
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_THAT(told[0].ids, ElementsAre(11));
}

TEST_F(TierBlocksTest, WhatComesBackIsToldAgain) {
  Follow({});
  tier_.StorePrompt(10, 1);
  TakeGone();
  TellSome();
  tier_.Remove(11);
  tier_.StorePrompt(10, 1);
  EXPECT_THAT(TakeGone(), ElementsAre(11));
  EXPECT_THAT(TellSome(), SizeIs(1));
}

TEST_F(TierBlocksTest, ABlockOfSeveralPagesIsThereWhileAllOfThemAre) {
  Follow({.pages_per_block = 3});
  tier_.StorePrompt(10, 8);
  tier_.Remove(12);
  TakeGone();
  std::vector<Told> told = TellSome();
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_THAT(told[0].ids, ElementsAre(16));
  EXPECT_EQ(told[0].parent, 13);
  EXPECT_THAT(told[0].tokens, ElementsAre(28, 29, 30, 31, 32, 33));
  tier_.Store(12, 11, 2);
  TakeGone();
  told = TellSome();
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_THAT(told[0].ids, ElementsAre(13));
  EXPECT_EQ(told[0].parent, std::nullopt);
  tier_.Remove(15);
  EXPECT_THAT(TakeGone(), ElementsAre(16));
  tier_.Remove(14);
  tier_.Remove(16);
  EXPECT_THAT(TakeGone(), IsEmpty());
}

TEST_F(TierBlocksTest, APageMayBelongToSeveralBlocks) {
  Follow({.pages_per_block = 2});
  tier_.Store(1, 0, 1);
  tier_.Store(2, 1, 2);
  tier_.Store(3, 1, 2);
  TakeGone();
  EXPECT_THAT(TellSome(), SizeIs(2));
  tier_.Remove(1);
  EXPECT_THAT(TakeGone(), UnorderedElementsAre(2, 3));
}

TEST_F(TierBlocksTest, WhatTheRulesLeaveOutIsLeftOut) {
  Follow({});
  tier_.StorePrompt(10, 2, {std::nullopt, "salt"});
  tier_.StorePrompt(20, 2, {std::nullopt, std::nullopt, true});
  tier_.StorePrompt(30, 2, {"", std::nullopt});
  TakeGone();
  EXPECT_THAT(TellSome(), IsEmpty());
  tier_.Remove(11);
  EXPECT_THAT(TakeGone(), IsEmpty());
}

TEST_F(TierBlocksTest, BlocksOfPairsHaveOneTokenMoreAtTheEnd) {
  Follow({.bigram = true});
  tier_.StorePrompt(10, 2, {std::nullopt, std::nullopt, true});
  TakeGone();
  const std::vector<Told> told = TellSome();
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_THAT(told[0].tokens, ElementsAre(22, 23, 24, 25, 26));
}

TEST_F(TierBlocksTest, ALargeTierIsToldInPartsEachBlockAfterItsParent) {
  constexpr uint32_t kPages = 30'000;
  Follow({});
  tier_.StorePrompt(0, kPages);
  tier_.StorePrompt(100'000, kPages);
  tier_.Store(200'000, kPages / 2, kPages / 2 + 1);  // a branch
  blocks_->StopTelling();
  TakeGone();
  EXPECT_THAT(TellSome(), IsEmpty());
  blocks_->TellAllAnew();
  std::set<BlockId> known;
  size_t parts = 0;
  for (std::vector<Told> some = TellSome(); !some.empty(); some = TellSome()) {
    size_t tokens = 0;
    for (const Told& run : some) {
      EXPECT_TRUE(!run.parent.has_value() || known.contains(*run.parent));
      known.insert(run.ids.begin(), run.ids.end());
      tokens += run.tokens.size();
    }
    EXPECT_LE(tokens, 1'024 + kPageTokens);
    ++parts;
  }
  EXPECT_EQ(known.size(), 2 * kPages + 1);
  EXPECT_GE(parts, 2 * kPages * kPageTokens / 1'024);
  EXPECT_LE(parts, 2 * kPages * kPageTokens / 1'024 + 1);
}

TEST_F(TierBlocksTest, WhatWasToldAndGoesWhileNobodyListensIsNotTold) {
  Follow({});
  tier_.StorePrompt(0, 3);
  TakeGone();
  EXPECT_FALSE(TellSome().empty());
  blocks_->StopTelling();
  tier_.Remove(2);
  EXPECT_THAT(TakeGone(), IsEmpty());
}

// Compares TierBlocks with a model that keeps the pages in a set and looks for
// whole blocks there.
class ModelTest : public TierBlocksTest,
                  public testing::WithParamInterface<uint32_t> {
 protected:
  static constexpr uint32_t kPagesPerBlock = 3;
  static constexpr uint32_t kMostPages = 8;  // in a prompt

  // Returns the id of a random page. Ids are numbers in base 3: an id without
  // its last digit is the id of the page before.
  static BlockId AnyPage(std::mt19937& random) {
    BlockId id = 1;
    for (uint32_t left = 1 + random() % kMostPages; left > 0; --left) {
      id = 3 * id + random() % 2;
    }
    return id;
  }
  static uint32_t OrdinalOf(BlockId id) {
    return id < 3 ? 0 : 1 + OrdinalOf(id / 3);
  }
  bool IsWhole(BlockId id) const {
    if (OrdinalOf(id) % kPagesPerBlock != 0) return false;
    for (uint32_t i = 0; i < kPagesPerBlock; ++i, id /= 3) {
      if (!pages_.contains(id)) return false;
    }
    return true;
  }
  std::set<BlockId> WholeBlocks() const {
    std::set<BlockId> whole;
    for (const BlockId id : pages_) {
      if (IsWhole(id)) whole.insert(id);
    }
    return whole;
  }
  // Applies events as a subscriber does.
  void Apply(const std::vector<BlockId>& gone, const std::vector<Told>& told) {
    for (const BlockId id : gone) EXPECT_EQ(known_.erase(id), 1);
    for (const Told& run : told) {
      std::optional<BlockId> before = run.parent;
      for (const BlockId id : run.ids) {
        EXPECT_TRUE(known_.insert(id).second);
        const bool begins = OrdinalOf(id) == kPagesPerBlock;
        EXPECT_EQ(before, begins ? std::nullopt : std::optional(id / 27));
        before = id;
      }
      EXPECT_EQ(run.tokens.size(), run.ids.size() * run.block_tokens);
    }
  }

  std::set<BlockId> pages_;
  std::set<BlockId> known_;
};

TEST_P(ModelTest, ASubscriberKnowsExactlyTheWholeBlocks) {
  SCOPED_TRACE(GetParam());
  std::mt19937 random(GetParam());
  Follow({.pages_per_block = kPagesPerBlock});
  bool is_told = true;
  for (int step = 0; step < 3'000; ++step) {
    const BlockId id = AnyPage(random);
    if (pages_.erase(id) > 0) {
      tier_.Remove(id);
    } else {
      tier_.Store(id, id / 3, OrdinalOf(id));
      pages_.insert(id);
    }
    if (random() % 4 == 0) continue;  // several changes at once
    const uint32_t action = random() % 50;
    if (action == 0) {
      blocks_->StopTelling();
      is_told = false;
    } else if (action == 1) {
      blocks_->TellAllAnew();
      known_.clear();
      is_told = true;
    }
    const std::vector<BlockId> gone = TakeGone();
    if (!is_told) continue;
    Apply(gone, TellAll());
    ASSERT_EQ(known_, WholeBlocks()) << "after step " << step;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, ModelTest, testing::Range(1u, 6u));

}  // namespace
}  // namespace pando
