// Replays the events of a cache and checks that the events give exactly the
// cache's contents. The operations may come before or while the contents are
// described, and the events may be taken seldom.

#include <cstdint>
#include <map>
#include <set>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/journal/event_log.h"
#include "core/nodes/page_hash.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/environment.h"
#include "tests/core/executor.h"
#include "tests/core/program_grid.h"

namespace pando::program {
namespace {

using HashedPages = std::map<PageId, PageHash>;

// Replays raw events to rebuild a cache's contents.
class Follower {
 public:
  explicit Follower(uint32_t page_tokens) : page_tokens_(page_tokens) {}

  void Apply(const std::vector<RawEvent>& events) {
    if (!events.empty() && std::holds_alternative<AllCleared>(events[0])) {
      ++resyncs_;
    }
    for (const RawEvent& event : events) {
      std::visit([this](const auto& kind) { (*this)(kind); }, event);
    }
  }
  const HashedPages& pages() const { return pages_; }
  // Returns how often the log began anew.
  int resyncs() const { return resyncs_; }

 private:
  void operator()(const PagesStored& stored) {
    const bool bigram = stored.ns->bigram;
    if (stored.parent != kPaddingPage) {
      ASSERT_TRUE(pages_.contains(stored.parent));
    }
    PageHash hash = stored.parent == kPaddingPage ? hasher_.Seed(*stored.ns)
                                                  : pages_[stored.parent];
    const Token* tokens = stored.tokens(page_tokens_);
    for (const PageId page : stored.pages()) {
      hash =
          hasher_.Next(hash, {tokens, page_tokens_ + (bigram ? 1 : 0)}, bigram);
      EXPECT_TRUE(pages_.emplace(page, hash).second) << page << " came twice";
      tokens += page_tokens_;
    }
  }
  void operator()(const PagesRemoved& removed) {
    for (const PageId page : removed.pages) {
      EXPECT_EQ(pages_.erase(page), 1u) << page << " was not there";
    }
  }
  void operator()(const PagesHit& hit) {
    EXPECT_TRUE(pages_.contains(hit.last)) << hit.last << " is not there";
  }
  void operator()(const AllCleared&) { pages_.clear(); }

  const uint32_t page_tokens_;
  PageHasher hasher_;
  HashedPages pages_;
  int resyncs_ = 0;
};

// Returns the hashed pages of the naive reference, which keeps whole prefixes.
HashedPages Expected(const ReferenceIndex& index, uint32_t page_tokens) {
  PageHasher hasher;
  HashedPages expected;
  for (const auto& [ns, pages] : index.namespaces()) {
    for (const auto& [prefix, page] : pages) {
      PageHash hash = hasher.Seed(ns);
      for (size_t begin = 0; begin < prefix.size(); begin += page_tokens) {
        std::vector<Token> tokens;
        for (size_t i = begin; i < begin + page_tokens; ++i) {
          if (ns.bigram && i == begin) {
            tokens.push_back(static_cast<Token>(prefix[i] >> 32));
          }
          tokens.push_back(static_cast<Token>(prefix[i]));
        }
        hash = hasher.Next(hash, tokens, ns.bigram);
      }
      expected[page.id] = hash;
    }
  }
  return expected;
}

class EventReplayTest : public testing::TestWithParam<bool> {};

TEST_P(EventReplayTest, GivesTheSealedPagesAfterRandomOperations) {
  constexpr int kPrograms = 30;
  const uint64_t first_seed = FromEnvironment("PANDO_TEST_SEED", 1);
  int gaps = 0;
  int parts = 0;
  for (uint64_t seed = first_seed; seed < first_seed + kPrograms; ++seed) {
    SCOPED_TRACE(absl::StrCat("PANDO_TEST_SEED=", seed));
    const Choices choices = ChoicesOf(seed);
    GridPoint point = AnyGridPoint(choices);
    point.is_bigram = GetParam();
    point.capacity_pages = 2 + choices(20);
    // Some watchers take the events so seldom that the log gives up.
    const bool is_late = choices(2) == 1;
    const int count = is_late ? 4000 : 400;
    const uint32_t pace = is_late ? count : 1;
    // Some watchers receive the description of the cache a few nodes at a time.
    const auto nodes = static_cast<uint32_t>(1 + choices(3));
    Executor executor(OptionsAt(point), count,
                      Executor::Events::kTakenByCaller);
    RandomOperations operations = OperationsAt(point, choices);
    Follower follower(point.page_tokens);
    std::vector<RawEvent> events;
    const auto begin = static_cast<int>(choices(count / 2));
    for (int i = 0; i < count && !HasFailure(); ++i) {
      if (i == begin) executor.real().StartEvents();
      ASSERT_THAT(executor.Run(operations.Next()), testing::IsEmpty());
      const bool is_taken = i == begin || i + 1 == count || choices(pace) == 0;
      if (!is_taken) continue;
      const bool is_all = executor.real().TakeEvents(events, nodes);
      follower.Apply(events);
      if (i < begin) {
        ASSERT_THAT(follower.pages(), testing::IsEmpty());
      } else if (!is_all) {
        ++parts;
      } else {
        ASSERT_EQ(follower.pages(),
                  Expected(executor.cached(), point.page_tokens))
            << "after operation " << i << " with " << point;
      }
    }
    gaps += follower.resyncs() - 1;
  }
  EXPECT_GT(gaps, 0);
  EXPECT_GT(parts, 0);
}

INSTANTIATE_TEST_SUITE_P(Units, EventReplayTest, testing::Bool(),
                         [](const auto& param) {
                           return param.param ? "pairs" : "tokens";
                         });

}  // namespace
}  // namespace pando::program
