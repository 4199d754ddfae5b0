// Work for operators runs in steps, between which the cache changes.

#include "core/parts/stepped_work.h"

#include <random>
#include <set>
#include <string>
#include <vector>

#include "core/nodes/first_entries.h"
#include "core/nodes/step_sizes.h"
#include "core/operators/eviction_work.h"
#include "core/operators/explanation.h"
#include "core/operators/listings.h"
#include "core/operators/policy_change.h"
#include "core/operators/tree_dump.h"
#include "tests/core/cache_fixture.h"

namespace pando {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A test with pages of one token, in a cache that is large enough for several
// steps.
class SteppedWorkTest : public testing::Test {
 protected:
  static constexpr uint32_t kPages = 20'000;
  static constexpr uint32_t kPrompts = 6'000;

  SteppedWorkTest() { cache_.OpenSession(session_, "one"); }
  void TearDown() override { EXPECT_THAT(cache_.CheckInvariants(), IsEmpty()); }

  // Caches a prompt as one node, after its part that is already cached.
  void Publish(const std::vector<Token>& tokens,
               const NamespaceKey& ns = kNoNamespace) {
    const auto pages =
        cache_
            .Allocate({.session = session_,
                       .ns = ns,
                       .pages = static_cast<uint32_t>(tokens.size())})
            ->pages;
    ASSERT_EQ(
        Outcome(cache_.Insert(
            {.session = session_, .ns = ns, .tokens = tokens, .pages = pages})),
        "OK");
  }
  // Publishes prompts of two tokens, which both are the prompt's number.
  void PublishPrompts(uint32_t count, const NamespaceKey& ns = kNoNamespace) {
    for (uint32_t i = 1; i <= count; ++i) Publish({i, i}, ns);
  }
  LockId Lock(const std::vector<Token>& tokens) {
    return cache_
        .Lock({.session = session_, .ns = kNoNamespace, .tokens = tokens})
        ->lock;
  }
  void Unlock(LockId lock) {
    ASSERT_EQ(Outcome(cache_.Unlock(session_, std::vector{lock})), "OK");
  }
  uint32_t Matched(const std::vector<Token>& tokens) {
    return cache_.Score({.ns = kNoNamespace, .tokens = tokens})->matched_tokens;
  }
  // Takes all steps, and calls `between` after each step but the last. Returns
  // the number of steps.
  template <typename Work, typename Between>
  int Run(Work& work, Between between) {
    int steps = 1;
    for (; !cache_.Step(work); ++steps) between();
    return steps;
  }

  const SessionId session_{1};
  PrefixCache cache_{{1, kPages + 1}};
};

// A step handles at most `nodes` nodes, so a change takes many steps.
TEST_F(SteppedWorkTest, AChangeOfPolicyTakesAStepForSomeNodesAndKeepsTheOrder) {
  PublishPrompts(kPrompts);
  for (const auto policy :
       {EvictionPolicyKind::kMru, EvictionPolicyKind::kLru,
        EvictionPolicyKind::kFilo, EvictionPolicyKind::kLfu,
        EvictionPolicyKind::kReuse, EvictionPolicyKind::kLru}) {
    for (const uint32_t nodes : {100u, kStepOrderedNodes}) {
      const EvictionPolicyKind before = cache_.Stats().eviction_policy;
      PolicyChange to(policy, nodes);
      const int steps = Run(to, [] {});
      EXPECT_EQ(to.previous(), before);
      EXPECT_EQ(cache_.Stats().eviction_policy, policy);
      if (policy == before) continue;
      // Each node is put into the new order and taken out of the old one.
      EXPECT_GE(steps, static_cast<int>(2 * kPrompts / nodes));
    }
  }
}

TEST_F(SteppedWorkTest, EvictionIsThatOfTheOldPolicyUntilTheNewIsInUse) {
  PublishPrompts(kPrompts);
  PolicyChange change(EvictionPolicyKind::kMru);
  uint32_t oldest = 1;
  uint32_t newest = kPrompts;
  Run(change, [&] {
    ASSERT_EQ(cache_.Evict(2), 2u);
    const bool is_new =
        cache_.Stats().eviction_policy != EvictionPolicyKind::kLru;
    const uint32_t victim = is_new ? newest-- : oldest++;
    ASSERT_EQ(Matched({victim, victim}), 0u);
  });
  EXPECT_GT(oldest, kPrompts / kStepOrderedNodes);
  EXPECT_LT(newest, kPrompts);
}

TEST_F(SteppedWorkTest, ALaterChangeOfPolicyTakesOver) {
  PublishPrompts(kPrompts);
  PolicyChange earlier(EvictionPolicyKind::kMru);
  ASSERT_FALSE(cache_.Step(earlier));
  PolicyChange later(EvictionPolicyKind::kFilo);
  cache_.Finish(later);
  EXPECT_TRUE(cache_.Step(earlier));
  EXPECT_EQ(earlier.previous(), EvictionPolicyKind::kLru);
  EXPECT_EQ(later.previous(), EvictionPolicyKind::kMru);
  EXPECT_EQ(cache_.Stats().eviction_policy, EvictionPolicyKind::kFilo);
}

// A test that loses sessions with reserved pages. The sessions are numbered
// from 2.
class SteppedQuarantineTest : public SteppedWorkTest {
 protected:
  void Lose(uint32_t sessions, uint32_t pages_each) {
    for (uint32_t i = 0; i < sessions; ++i) {
      const SessionId session(2 + i);
      cache_.OpenSession(session, "lost");
      ASSERT_TRUE(cache_.Allocate({session, kNoNamespace, pages_each}).ok());
      ASSERT_TRUE(cache_.AttachSession(session, WriterId(1)).ok());
      cache_.SuspendSession(session, absl::UnixEpoch());
    }
    cache_.ExpireSessions(absl::UnixEpoch(), absl::ZeroDuration());
  }
  uint32_t Quarantined() { return cache_.Stats().pages.quarantined; }
};

TEST_F(SteppedQuarantineTest, AListHasWhoStaysOnceThoughOthersGo) {
  constexpr uint32_t kLost = 2'500;
  Lose(kLost, 1);
  QuarantineListing work(kLost);
  uint32_t gone = 2;  // the first one is listed already, the last is not
  EXPECT_GE(Run(work,
                [&] {
                  ASSERT_TRUE(cache_.FreeQuarantine(SessionNumber(gone)).ok());
                  gone = 1 + kLost;
                }),
            3);
  const QuarantineList list = work.Take();
  std::set<SessionNumber> listed;
  for (const QuarantineInfo& lost : list.sessions) listed.insert(lost.number);
  EXPECT_EQ(listed.size(), list.sessions.size());
  EXPECT_EQ(listed.size(), kLost - 1);
  EXPECT_EQ(listed.count(SessionNumber(1 + kLost)), 0u);
}

TEST_F(SteppedQuarantineTest, PagesAreGivenUpSomeInAStep) {
  Lose(2, 5'000);
  QuarantineRelease work(SessionNumber(2));
  uint32_t before = Quarantined();
  const int steps = Run(work, [&] {
    const uint32_t after = Quarantined();
    EXPECT_LT(after, before);
    EXPECT_GE(after, 5'000u);
    before = after;
  });
  EXPECT_GE(steps, 3);
  EXPECT_EQ(work.result().value(), 5'000u);
  EXPECT_EQ(Quarantined(), 5'000u);
  const ExpiredSessions expired =
      cache_.ExpireSessions(absl::UnixEpoch(), absl::ZeroDuration());
  EXPECT_THAT(expired.gone, ElementsAre(SessionId(2)));
}

TEST_F(SteppedQuarantineTest, WhoseWriterGoesMeanwhileHasNoPagesLeft) {
  Lose(1, 5'000);
  QuarantineRelease work(SessionNumber(2));
  Run(work, [&] { cache_.WriterGone(WriterId(1)); });
  EXPECT_GT(work.result().value(), 0u);
  EXPECT_EQ(Quarantined(), 0u);
}

TEST_F(SteppedWorkTest, AnEvictionTakesAFewPagesInAStep) {
  PublishPrompts(1'000);
  EvictionWork work(1'500);
  EXPECT_GE(Run(work, [] {}), 5);
  EXPECT_EQ(work.evicted_pages(), 1'500u);
  EXPECT_EQ(cache_.Stats().pages.evictable, 500u);
}

TEST_F(SteppedWorkTest, AFlushEndsThoughOthersInsertMeanwhile) {
  PublishPrompts(kPrompts);
  const LockId lock = Lock({7, 7});
  FlushWork work;
  Token next = kPrompts;
  const int steps = Run(work, [&] {
    for (int i = 0; i < 400; ++i, ++next) Publish({next + 1, next + 1});
  });
  EXPECT_GT(steps, 3);
  for (Token i = 1; i <= kPrompts; ++i) {
    ASSERT_EQ(Matched({i, i}), i == 7 ? 2u : 0u) << i;
  }
  EXPECT_EQ(work.result().protected_pages, 2u);
  Unlock(lock);
}

TEST_F(SteppedWorkTest, AFlushOfOneNamespaceStepsOverTheOthers) {
  const NamespaceKey other{.extra_key = "other", .cache_salt = {}};
  PublishPrompts(3'000);
  PublishPrompts(500, other);
  FlushWork work(other);
  EXPECT_GT(Run(work, [] {}), 1);
  EXPECT_EQ(work.result().evicted_pages, 1'000u);
  EXPECT_EQ(cache_.Stats().pages.evictable, 6'000u);
  FlushWork unknown(other);
  EXPECT_TRUE(cache_.Step(unknown));
}

TEST_F(SteppedWorkTest, AListOfLocksHasThoseThatStayOnce) {
  PublishPrompts(kPrompts);
  std::vector<LockId> locks;
  for (Token i = 1; i <= kPrompts; ++i) locks.push_back(Lock({i, i}));
  LockListing listing(kPrompts, std::nullopt);
  size_t released = 0;
  const int steps = Run(listing, [&] {
    for (int i = 0; i < 100; ++i) Unlock(locks[released++]);
  });
  EXPECT_GT(steps, 1);
  std::multiset<uint64_t> nodes;
  for (const LockInfo& lock : listing.Take().locks) nodes.insert(lock.node);
  EXPECT_EQ(std::set(nodes.begin(), nodes.end()).size(), nodes.size());
  EXPECT_GE(nodes.size(), kPrompts - released);
}

TEST_F(SteppedWorkTest, LocksAreReleasedAFewInAStep) {
  PublishPrompts(4'000);
  for (Token i = 1; i <= 4'000; ++i) Lock({i, i});
  LockRelease release(SessionNumber(1));
  EXPECT_GT(Run(release, [] {}), 3);
  EXPECT_EQ(*release.result(), 4'000u);
  EXPECT_EQ(cache_.Stats().locks, 0u);
}

TEST_F(SteppedWorkTest, ASessionThatEndsMeanwhileHasNoMoreLocksToRelease) {
  PublishPrompts(4'000);
  for (Token i = 1; i <= 4'000; ++i) Lock({i, i});
  LockRelease release(SessionNumber(1));
  EXPECT_FALSE(cache_.Step(release));
  cache_.CloseSession(session_);
  EXPECT_TRUE(cache_.Step(release));
  EXPECT_GT(*release.result(), 0u);
  LockRelease unknown(SessionNumber(9));
  EXPECT_TRUE(cache_.Step(unknown));
  EXPECT_EQ(Outcome(unknown.result()), "SESSION_LOST");
}

TEST_F(SteppedWorkTest, SessionsAndNamespacesAreListedInSteps) {
  for (uint64_t id = 2; id <= 2'500; ++id) {
    cache_.OpenSession(SessionId(id), "many");
  }
  SessionListing sessions(10'000);
  EXPECT_GT(Run(sessions, [] {}), 2);
  const SessionList list = sessions.Take();
  EXPECT_EQ(list.total, 2'500u);
  ASSERT_EQ(list.sessions.size(), 2'500u);
  EXPECT_EQ(list.sessions.front().number, SessionNumber(1));
  EXPECT_EQ(list.sessions.back().number, SessionNumber(2'500));

  for (int i = 0; i < 2'500; ++i) {
    Publish({1}, {.extra_key = std::to_string(i), .cache_salt = {}});
  }
  Publish({1, 2}, {.extra_key = "largest", .cache_salt = {}});
  NamespaceListing namespaces(2);
  EXPECT_GT(Run(namespaces, [] {}), 2);
  const NamespaceList largest = namespaces.Take();
  EXPECT_EQ(largest.total, 2'501u);
  ASSERT_EQ(largest.namespaces.size(), 2u);
  EXPECT_EQ(largest.namespaces[0].extra_key, "largest");
  EXPECT_EQ(largest.namespaces[1].extra_key, "0");
}

// Nodes are split and evicted between the steps of the dump.
TEST_F(SteppedWorkTest, ADumpListsEachNodeOnceAndAfterItsParent) {
  std::minstd_rand random(1);
  const auto any_prompt = [&] {
    std::vector<Token> tokens;
    for (int i = 0; i < 6; ++i) {
      tokens.push_back(static_cast<Token>(random() % 8));
    }
    return tokens;
  };
  const auto grow = [&] {
    const std::vector<Token> tokens = any_prompt();
    const auto match = cache_.Match({.session = session_,
                                     .ns = kNoNamespace,
                                     .tokens = tokens,
                                     .lock = true,
                                     .reserve_tokens = 6});
    ASSERT_EQ(Outcome(match), "OK");
    EXPECT_EQ(Outcome(cache_.Insert(
                  {.session = session_,
                   .ns = kNoNamespace,
                   .tokens = std::span(tokens).subspan(match->matched_tokens),
                   .pages = match->reserved,
                   .anchor = match->lock,
                   .lock_action = LockAction::kUnlock})),
              "OK");
  };
  for (int i = 0; i < 4'000; ++i) grow();
  TreeDumpWork work(100'000, std::nullopt);
  int steps = 0;
  std::set<uint64_t> seen = {0};
  bool is_done = false;
  while (!is_done) {
    is_done = cache_.Step(work);
    ++steps;
    for (const TreeNodeInfo& node : work.TakeNodes()) {
      EXPECT_TRUE(seen.contains(node.parent)) << node.node;
      EXPECT_TRUE(seen.insert(node.node).second) << node.node;
    }
    for (int i = 0; i < 50; ++i) grow();
    cache_.Evict(100);
  }
  EXPECT_GT(steps, 2);
}

TEST_F(SteppedWorkTest, ADumpThatIsCutOffSaysHowMuchIsMissing) {
  PublishPrompts(3'000);
  const TreeDump dump = cache_.DumpTree(1'200, std::nullopt);
  EXPECT_EQ(dump.nodes.size(), 1'200u);
  EXPECT_EQ(dump.omitted, 1'800u);
}

// The test makes one path of nodes with a lock at each. The explained prompt
// diverges from that path after the first node, so all locks are at or below
// that node.
TEST_F(SteppedWorkTest, AnExplanationPassesEachNodeOnceForAllLocksBelowIt) {
  constexpr uint32_t kDepth = 3'000;
  std::vector<Token> tokens(kDepth, 1);
  Publish(tokens);
  for (uint32_t depth = 1; depth <= kDepth; ++depth) {
    tokens.resize(kDepth, 1);
    tokens.resize(depth);
    Lock(tokens);
  }
  const std::vector<Token> prompt = {1, 2};
  Explanation explanation(kNoNamespace, prompt);
  const int steps = Run(explanation, [] {});
  EXPECT_LT(steps, 20);
  const MatchExplanation result = explanation.Take();
  EXPECT_EQ(result.matched_tokens, 1u);
  EXPECT_EQ(result.end, MatchEnd::kDiverged);
  ASSERT_EQ(result.locks.size(), 100u);
  EXPECT_EQ(result.locks.front().locked_tokens, 1u);
}

TEST_F(SteppedWorkTest, AnExplanationFindsThePrefixAgainInEachStep) {
  PublishPrompts(kPrompts);
  std::vector<LockId> locks;
  for (Token i = 1; i <= kPrompts; ++i) locks.push_back(Lock({i, i}));
  const std::vector<Token> prompt = {5, 5};
  Explanation explanation(kNoNamespace, prompt);
  Run(explanation, [&] {
    if (Matched(prompt) == 0) return;
    Unlock(locks[4]);
    cache_.Evict(kPages);
  });
  EXPECT_EQ(explanation.Take().matched_tokens, 2u);
}

TEST(FirstEntriesTest, KeepsTheFirstInOrderAndCountsAll) {
  FirstEntries<int, std::less<>> first(3);
  for (const int entry : {5, 1, 4, 2, 3, 9, 0}) first.Add(entry);
  EXPECT_EQ(first.seen(), 7u);
  EXPECT_THAT(first.Take(), ElementsAre(0, 1, 2));
  FirstEntries<int, std::less<>> none(0);
  none.Add(1);
  EXPECT_THAT(none.Take(), IsEmpty());
}

}  // namespace
}  // namespace pando
