// Tests of the times, ages and outcomes that the cache measures for operators.

#include "core/journal/measurements.h"

#include <numeric>
#include <string>

#include "absl/time/time.h"
#include "tests/core/cache_fixture.h"

namespace pando {
namespace {

uint64_t Count(const HistogramView& histogram) {
  return std::accumulate(histogram.counts.begin(), histogram.counts.end(),
                         uint64_t{0});
}

class MeasurementsTest : public CacheFixture {
 protected:
  Measurements Measured() { return cache_.Stats().measured; }
  void SetTime(absl::Duration time) {
    cache_.ExpireSessions(absl::UnixEpoch() + time, absl::ZeroDuration());
  }
  void Match(std::string_view letters, uint32_t max_tokens = 100) {
    EXPECT_EQ(Outcome(cache_.Match({.session = {},
                                    .ns = kNoNamespace,
                                    .tokens = Spell(letters),
                                    .max_tokens = max_tokens})),
              "OK");
  }
};

TEST_F(MeasurementsTest, MatchesAreFullPartialOrMissed) {
  Publish("ab");
  Match("ab");
  Match("abc");
  Match("abc", 2 * kPageTokens);  // the limit ends the match
  Match("x");
  Match("");
  const ClassTraffic traffic = Measured().classes.at(0);
  EXPECT_EQ(traffic.full_matches, 2u);
  EXPECT_EQ(traffic.partial_matches, 1u);
  EXPECT_EQ(traffic.missed_matches, 2u);
  EXPECT_EQ(traffic.query_tokens, cache_.Stats().counters.query_tokens);
  EXPECT_EQ(traffic.hit_tokens, cache_.Stats().counters.hit_tokens);
}

TEST_F(MeasurementsTest, AMatchThatSplitsANodeIsPartial) {
  Publish("abc");
  EXPECT_EQ(Outcome(MatchAndLock("abx")), "OK");
  EXPECT_EQ(Measured().classes.at(0).partial_matches, 1u);
  EXPECT_EQ(Measured().classes.at(0).full_matches, 0u);
  EXPECT_EQ(Measured().classes.at(0).hit_tokens, 2 * kPageTokens);
}

TEST_F(MeasurementsTest, LoadedTokensAreCountedWhenTheyAreHitFirst) {
  const auto pages = Concat(Publish("a"), Allocate(3));
  const auto tokens = Spell("abcd");
  EXPECT_EQ(Outcome(cache_.Insert({.session = session_,
                                   .ns = kNoNamespace,
                                   .tokens = tokens,
                                   .pages = pages,
                                   .is_load = true})),
            "OK");
  const auto loaded_hit_pages = [&] {
    return Measured().classes.at(0).loaded_hit_tokens / kPageTokens;
  };
  EXPECT_EQ(loaded_hit_pages(), 0u);
  EXPECT_EQ(Outcome(MatchAndLock("abc")), "OK");
  EXPECT_EQ(loaded_hit_pages(), 2u);
  EXPECT_EQ(Outcome(MatchAndLock("abcd")), "OK");
  EXPECT_EQ(loaded_hit_pages(), 3u);
  EXPECT_EQ(Outcome(MatchAndLock("abcd")), "OK");
  EXPECT_EQ(loaded_hit_pages(), 3u);
}

TEST_F(MeasurementsTest, AnEvictedPageHasAnAgeAndAnIdleTime) {
  SetTime(absl::Seconds(100));
  Publish("abcd");
  SetTime(absl::Seconds(103));
  Touch("abcd");
  SetTime(absl::Seconds(110));
  cache_.Evict(3);
  const Measurements measured = Measured();
  const auto age =
      measured.evicted_page_age_seconds[EvictionReason::kRequest].View();
  const auto idle =
      measured.evicted_page_idle_seconds[EvictionReason::kRequest].View();
  EXPECT_EQ(Count(age), 3u);
  EXPECT_EQ(age.sum, 3 * 10.0);
  EXPECT_EQ(Count(idle), 3u);
  EXPECT_EQ(idle.sum, 3 * 7.0);
  EXPECT_EQ(measured.evicted_pages[EvictionReason::kRequest]
                                  [EvictionPolicyKind::kLru],
            3u);
}

TEST_F(MeasurementsTest, EvictedPagesAreCountedByReasonAndPolicy) {
  Publish("abc");
  cache_.SetEvictionPolicy(EvictionPolicyKind::kFifo);
  cache_.Evict(1);
  Allocate(kUsable - 1);
  cache_.Flush();
  const auto evicted = Measured().evicted_pages;
  constexpr auto kFifo = EvictionPolicyKind::kFifo;
  EXPECT_EQ(evicted[EvictionReason::kRequest][kFifo], 1u);
  EXPECT_EQ(evicted[EvictionReason::kAllocation][kFifo], 1u);
  EXPECT_EQ(evicted[EvictionReason::kFlush][kFifo], 1u);
}

TEST_F(MeasurementsTest, ASplitKeepsTheAgeOfBothParts) {
  SetTime(absl::Seconds(100));
  Publish("abcd");
  SetTime(absl::Seconds(105));
  EXPECT_EQ(Outcome(Unlock(Lock("ab"))), "OK");
  SetTime(absl::Seconds(110));
  cache_.Flush();
  const Measurements measured = Measured();
  EXPECT_EQ(
      measured.evicted_page_age_seconds[EvictionReason::kFlush].View().sum,
      4 * 10.0);
  EXPECT_EQ(
      measured.evicted_page_idle_seconds[EvictionReason::kFlush].View().sum,
      2 * 5.0 + 2 * 10.0);
}

TEST_F(MeasurementsTest, AReuseGapIsTheTimeSinceTheLastUse) {
  SetTime(absl::Seconds(100));
  Publish("ab");
  SetTime(absl::Seconds(104));
  Publish("abc");  // inserting the prefix again is a use of it
  SetTime(absl::Seconds(106));
  Touch("abc");
  Match("x");
  const auto gaps = Measured().reuse_gap_seconds;
  EXPECT_EQ(Count(gaps.View()), 3u);
  EXPECT_EQ(gaps.View().sum, 3 * 2.0);
}

TEST_F(MeasurementsTest, WhatIsLockedIsInUse) {
  SetTime(absl::Seconds(100));
  Publish("ab");
  const LockId lock = Lock("ab");
  SetTime(absl::Seconds(150));
  Touch("ab");
  EXPECT_EQ(Measured().reuse_gap_seconds.View().sum, 0);
  EXPECT_EQ(Outcome(Unlock(lock)), "OK");
  SetTime(absl::Seconds(151));
  Touch("ab");
  EXPECT_EQ(Measured().reuse_gap_seconds.View().sum, 2 * 1.0);
}

TEST_F(MeasurementsTest, LocksEndForAReason) {
  const SessionId other = OpenSession();
  const SessionId lost = OpenSession();
  EXPECT_EQ(Outcome(Unlock(Lock("a"))), "OK");
  Lock("a");
  EXPECT_EQ(Outcome(cache_.ReleaseLocks(SessionNumber(1))), "OK");
  Lock(other, "a");
  Lock(other, "a");
  cache_.CloseSession(other);
  Lock(lost, "a");
  cache_.SuspendSession(lost, absl::UnixEpoch());
  SetTime(absl::Seconds(1));
  const auto ended = Measured().ended_locks;
  EXPECT_EQ(ended[LockEnd::kUnlocked], 1u);
  EXPECT_EQ(ended[LockEnd::kOperator], 1u);
  EXPECT_EQ(ended[LockEnd::kSessionClosed], 2u);
  EXPECT_EQ(ended[LockEnd::kSessionLost], 1u);
}

TEST_F(MeasurementsTest, TheOldestLockIsTheOneThatIsHeldLongest) {
  EXPECT_EQ(cache_.Stats().oldest_lock_age, absl::ZeroDuration());
  SetTime(absl::Seconds(100));
  const LockId first = Lock("a");
  SetTime(absl::Seconds(110));
  const LockId second = Lock("a");
  SetTime(absl::Seconds(120));
  const LockId third = Lock("b");
  SetTime(absl::Seconds(130));
  EXPECT_EQ(cache_.Stats().oldest_lock_age, absl::Seconds(30));
  EXPECT_EQ(Outcome(Unlock(second)), "OK");
  EXPECT_EQ(cache_.Stats().oldest_lock_age, absl::Seconds(30));
  EXPECT_EQ(Outcome(Unlock(first)), "OK");
  EXPECT_EQ(cache_.Stats().oldest_lock_age, absl::Seconds(10));
  EXPECT_EQ(Outcome(Unlock(third)), "OK");
  EXPECT_EQ(cache_.Stats().oldest_lock_age, absl::ZeroDuration());
  EXPECT_EQ(Measured().lock_hold_seconds.View().sum, 30 + 20 + 10);
}

TEST_F(MeasurementsTest, AllocationsSucceedAtOnceOrByEvictingOrFailForAReason) {
  Publish("ab");
  Allocate(kUsable - 3);
  Allocate(3);
  EXPECT_EQ(Outcome(cache_.Allocate({session_, kNoNamespace, 1})),
            "POOL_EXHAUSTED");
  EXPECT_EQ(Outcome(cache_.Allocate({session_, kNoNamespace, kCapacity})),
            "POOL_EXHAUSTED");
  Allocate(0);  // is not counted as an allocation
  const Measurements measured = Measured();
  EXPECT_EQ(measured.allocations, 3u);
  EXPECT_EQ(measured.allocations_after_eviction, 1u);
  EXPECT_EQ(measured.failed_allocations[AllocationFailure::kExhausted], 1u);
  EXPECT_EQ(measured.failed_allocations[AllocationFailure::kTooLarge], 1u);
  EXPECT_EQ(measured.failed_allocations[AllocationFailure::kQuota], 0u);
}

TEST_F(MeasurementsTest, NothingIsTimedWithoutAClock) {
  Touch("a");
  EXPECT_EQ(Count(Measured().lock_wait_seconds.View()), 0u);
}

// A clock that advances by 3 us each time the cache reads it.
int64_t ticks = 0;
int64_t Tick() { return ticks += 3000; }

TEST(OperationTimesTest, EachOperationIsTimedFromBeforeTheLockToItsEnd) {
  PrefixCache cache({.page_tokens = 4, .capacity_pages = 16, .clock = Tick});
  const SessionId session(1);
  cache.OpenSession(session, "");
  const auto tokens = SpellTokens("ab", 4, 0);
  const auto pages = cache.Allocate({session, kNoNamespace, 2});
  ASSERT_EQ(Outcome(pages), "OK");
  EXPECT_EQ(Outcome(cache.Insert({.session = session,
                                  .ns = kNoNamespace,
                                  .tokens = tokens,
                                  .pages = pages->pages})),
            "OK");
  EXPECT_EQ(Outcome(cache.Score({.ns = kNoNamespace, .tokens = tokens})), "OK");
  const auto lock = cache.Lock({session, kNoNamespace, tokens});
  EXPECT_EQ(Outcome(cache.Unlock(session, std::vector{lock->lock})), "OK");
  EXPECT_EQ(Outcome(cache.Unlock(session, std::vector{lock->lock})),
            "LOCK_UNKNOWN");
  EXPECT_EQ(cache.Evict(1), 1u);
  const Measurements measured = cache.Stats().measured;
  const auto seconds = [&](Operation operation) {
    return measured.operation_seconds[operation].View().sum;
  };
  for (const Operation once :
       {Operation::kAllocate, Operation::kInsert, Operation::kScore,
        Operation::kLock, Operation::kEvict}) {
    EXPECT_NEAR(seconds(once), 3e-6, 1e-12) << static_cast<int>(once);
  }
  EXPECT_NEAR(seconds(Operation::kUnlock), 6e-6, 1e-12);
  EXPECT_EQ(seconds(Operation::kFree), 0);
  EXPECT_EQ(Count(measured.lock_wait_seconds.View()), 7u);
  EXPECT_EQ(measured.lock_wait_seconds.View().sum, 0);  // nothing to wait for
}

}  // namespace
}  // namespace pando
