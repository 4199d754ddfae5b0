// Tests of releases that take steps, between which the cache is in use. The
// tests drive each step by hand, and each step does a bounded part.

#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "core/nodes/step_sizes.h"
#include "core/operators/session_ends.h"
#include "core/parts/stepped_work.h"
#include "tests/core/cache_fixture.h"

namespace pando {
namespace {

using ::testing::IsEmpty;

// Runs a function on the parts of a cache.
template <typename F>
class Probe : public SteppedWork {
 public:
  explicit Probe(F probe) : probe_(std::move(probe)) {}
  bool Step(CacheParts& parts) override {
    probe_(parts);
    return true;
  }

 private:
  F probe_;
};

// A test with pages of one token, a path of nodes of one page each, and a lock
// at the end of each node.
class SteppedReleaseTest : public testing::Test {
 protected:
  static constexpr uint32_t kPages = 12'000;
  static constexpr uint32_t kDepth = 3'000;
  // A lock counts as one unit of work, and so does each node that it unlocks.
  static constexpr uint32_t kSteps =
      (2 * kDepth + kStepReleases - 1) / kStepReleases;

  SteppedReleaseTest() {
    cache_.OpenSession(session_, "one");
    for (uint32_t i = 1; i <= kDepth; ++i) path_.push_back(i);
    Publish(path_);
  }
  void TearDown() override { EXPECT_THAT(cache_.CheckInvariants(), IsEmpty()); }

  template <typename F>
  void WithParts(F probe) {
    Probe<F> work(std::move(probe));
    cache_.Step(work);
  }
  void Publish(const std::vector<Token>& tokens) {
    const auto pages = cache_
                           .Allocate({session_, kNoNamespace,
                                      static_cast<uint32_t>(tokens.size())})
                           ->pages;
    ASSERT_EQ(Outcome(cache_.Insert({.session = session_,
                                     .ns = kNoNamespace,
                                     .tokens = tokens,
                                     .pages = pages})),
              "OK");
  }
  LockId LockFirst(uint32_t pages) {
    return cache_
        .Lock({.session = session_,
               .ns = kNoNamespace,
               .tokens = std::span(path_).first(pages)})
        ->lock;
  }
  void LockAll() {
    for (uint32_t pages = 1; pages <= kDepth; ++pages) {
      locks_.push_back(LockFirst(pages));
    }
  }
  uint64_t Holds(Operation operation) {
    const CacheStats stats = cache_.Stats();
    const HistogramView holds =
        stats.measured.operation_seconds[operation].View();
    return std::accumulate(holds.counts.begin(), holds.counts.end(),
                           uint64_t{0});
  }
  PageCounts Counts() { return cache_.Stats().pages; }

  const SessionId session_{1};
  std::vector<Token> path_;
  std::vector<LockId> locks_;
  bool takes_steps_ = false;  // the test runs SessionEnds itself
  uint32_t told_of_ends_ = 0;
  PrefixCache cache_{{.page_tokens = 1,
                      .capacity_pages = kPages + 1,
                      .on_ends =
                          [this] {
                            ++told_of_ends_;
                            if (!takes_steps_) cache_.Run(SessionEnds());
                          },
                      .clock = [] { return int64_t{0}; }}};
};

TEST_F(SteppedReleaseTest, AnUnlockOfManyDeepLocksTakesBoundedSteps) {
  LockAll();
  EXPECT_EQ(Counts().protected_, kDepth);
  ASSERT_EQ(Outcome(cache_.Unlock(session_, locks_)), "OK");
  EXPECT_EQ(Counts().evictable, kDepth);
  EXPECT_EQ(cache_.Stats().locks, 0u);
  EXPECT_EQ(Holds(Operation::kUnlock), kSteps);
}

TEST_F(SteppedReleaseTest, AnUnlockThatNamesAnUnknownLockChangesNothing) {
  LockAll();
  std::vector<LockId> locks = locks_;
  locks.emplace_back(1234);
  EXPECT_EQ(Outcome(cache_.Unlock(session_, locks)), "LOCK_UNKNOWN");
  EXPECT_EQ(cache_.Stats().locks, kDepth);
  EXPECT_EQ(Outcome(cache_.Unlock(session_, locks_)), "OK");
}

TEST_F(SteppedReleaseTest, TheEndOfASessionTakesItsLocksInBoundedSteps) {
  LockAll();
  WithParts([&](CacheParts& parts) { parts.holdings.Close(session_); });
  EXPECT_EQ(Outcome(cache_.CheckSession(session_)), "SESSION_LOST");
  EXPECT_EQ(cache_.Stats().sessions, 0u);
  uint32_t steps = 0;
  for (bool has_more = true; has_more; ++steps) {
    EXPECT_EQ(Counts().protected_ > 0, steps < kSteps);
    WithParts([&](CacheParts& parts) { has_more = parts.holdings.EndStep(); });
    EXPECT_THAT(cache_.CheckInvariants(), IsEmpty());
  }
  EXPECT_EQ(steps, kSteps);
  EXPECT_EQ(Counts().evictable, kDepth);
  EXPECT_EQ(cache_.Stats().counters.sessions_closed, 1u);
}

TEST_F(SteppedReleaseTest, TheEndOfASessionFreesItsPagesInBoundedSteps) {
  constexpr uint32_t kReserved = 9'000;
  ASSERT_TRUE(cache_.Allocate({session_, kNoNamespace, kReserved}).ok());
  WithParts([&](CacheParts& parts) {
    parts.holdings.Close(session_);
    EXPECT_TRUE(parts.holdings.EndStep());
  });
  EXPECT_THAT(cache_.CheckInvariants(), IsEmpty());
  EXPECT_GT(Counts().reserved, 0u);
  cache_.CloseSession(session_);
  EXPECT_EQ(Counts().reserved, 0u);
  EXPECT_EQ(Counts().free, kPages - kDepth);
}

TEST_F(SteppedReleaseTest, TheCallerIsToldOfAnEndThatTakesMoreThanAStep) {
  LockAll();
  takes_steps_ = true;
  cache_.CloseSession(session_);
  EXPECT_EQ(told_of_ends_, 1u);
  EXPECT_EQ(Counts().protected_, kDepth - kStepReleases / 2);
  SessionEnds ends;
  for (uint32_t steps = 2; steps < kSteps; ++steps) {
    EXPECT_FALSE(cache_.Step(ends));
    EXPECT_THAT(cache_.CheckInvariants(), IsEmpty());
  }
  EXPECT_TRUE(cache_.Step(ends));
  EXPECT_EQ(Counts().evictable, kDepth);
}

TEST_F(SteppedReleaseTest, AnEndThatTakesOneStepIsDoneAtOnce) {
  LockFirst(1);
  takes_steps_ = true;
  cache_.CloseSession(session_);
  EXPECT_EQ(told_of_ends_, 0u);
  EXPECT_EQ(Counts().evictable, kDepth);
}

TEST_F(SteppedReleaseTest, PagesGoIntoQuarantineAndOutOfItInBoundedSteps) {
  constexpr uint32_t kReserved = 9'000;
  constexpr WriterId kWriter(7);
  ASSERT_EQ(Outcome(cache_.AttachSession(session_, kWriter)), "OK");
  ASSERT_TRUE(cache_.Allocate({session_, kNoNamespace, kReserved}).ok());
  takes_steps_ = true;
  cache_.SuspendSession(session_, absl::UnixEpoch());
  cache_.ExpireSessions(absl::UnixEpoch(), absl::InfiniteDuration());
  const uint32_t in_a_step = Counts().quarantined;
  EXPECT_LT(in_a_step, kReserved / 2);
  EXPECT_THAT(cache_.CheckInvariants(), IsEmpty());
  cache_.Run(SessionEnds());
  EXPECT_EQ(Counts().quarantined, kReserved);
  EXPECT_EQ(cache_.Stats().counters.quarantined_pages, kReserved);
  cache_.WriterGone(kWriter);
  EXPECT_EQ(Counts().quarantined, kReserved - in_a_step);
  EXPECT_THAT(cache_.CheckInvariants(), IsEmpty());
  cache_.Run(SessionEnds());
  EXPECT_EQ(Counts().free, kPages - kDepth);
  EXPECT_EQ(told_of_ends_, 2u);
}

TEST_F(SteppedReleaseTest, AnEndThatIsToldLateSkipsQuarantine) {
  ASSERT_EQ(Outcome(cache_.AttachSession(session_, WriterId(7))), "OK");
  ASSERT_TRUE(cache_.Allocate({session_, kNoNamespace, 9'000}).ok());
  takes_steps_ = true;
  cache_.SuspendSession(session_, absl::UnixEpoch());
  cache_.ExpireSessions(absl::UnixEpoch(), absl::InfiniteDuration());
  cache_.CloseSession(session_);
  EXPECT_THAT(cache_.CheckInvariants(), IsEmpty());
  cache_.Run(SessionEnds());
  EXPECT_THAT(cache_.ListQuarantine(1).sessions, IsEmpty());
  EXPECT_EQ(Counts().free, kPages - kDepth);
}

// The cache learns of the writer's end while the session enters quarantine.
TEST_F(SteppedReleaseTest, AWriterThatEndsMeanwhileHoldsNothingInQuarantine) {
  constexpr WriterId kWriter(7);
  ASSERT_EQ(Outcome(cache_.AttachSession(session_, kWriter)), "OK");
  ASSERT_TRUE(cache_.Allocate({session_, kNoNamespace, 1}).ok());
  cache_.SuspendSession(session_, absl::UnixEpoch());
  WithParts([&](CacheParts& parts) {
    parts.journal.set_time(absl::UnixEpoch());
    parts.holdings.Expire(absl::InfiniteDuration());
  });
  EXPECT_EQ(Outcome(cache_.CheckSession(session_)), "SESSION_LOST");
  cache_.WriterGone(kWriter);
  cache_.ExpireSessions(absl::UnixEpoch(), absl::InfiniteDuration());
  EXPECT_THAT(cache_.ListQuarantine(1).sessions, IsEmpty());
  EXPECT_EQ(Counts().free, kPages - kDepth);
}

TEST_F(SteppedReleaseTest, ALockWhoseReleaseHasBegunIsNotFound) {
  const LockId first_half = LockFirst(kDepth / 2);
  const LockId lock = LockFirst(kDepth);
  for (uint32_t pages = 1; pages < kDepth; ++pages) {
    ASSERT_EQ(Outcome(cache_.Unlock(session_, std::vector{LockFirst(pages)})),
              "OK");
  }
  WithParts([&](CacheParts& parts) {
    const Session& session = *parts.sessions.Find(session_);
    uint32_t work = 10;
    EXPECT_FALSE(parts.holdings.ReleaseLock(
        *parts.sessions.FindLock(session, lock), LockEnd::kOperator, work));
    EXPECT_EQ(work, 0u);
  });
  EXPECT_THAT(cache_.CheckInvariants(), IsEmpty());
  EXPECT_EQ(Counts().evictable, 10u);
  EXPECT_EQ(Outcome(cache_.Unlock(session_, std::vector{lock})),
            "LOCK_UNKNOWN");
  EXPECT_EQ(Outcome(cache_.Insert({.session = session_,
                                   .ns = kNoNamespace,
                                   .tokens = {},
                                   .pages = {},
                                   .anchor = lock})),
            "LOCK_UNKNOWN");
  EXPECT_EQ(Outcome(cache_.Unlock(session_, std::vector{first_half})), "OK");
  EXPECT_EQ(*cache_.ReleaseLocks(SessionNumber(1)), 1u);
  EXPECT_EQ(Counts().evictable, kDepth);
}

}  // namespace
}  // namespace pando
