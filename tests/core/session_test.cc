#include <string>

#include "absl/time/time.h"
#include "tests/core/cache_fixture.h"

namespace pando {
namespace {

constexpr absl::Duration kQuarantine = absl::Seconds(10);
const absl::Time kNow = absl::UnixEpoch();

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using SessionTest = CacheFixture;

TEST_F(SessionTest, IsIdleWithoutLocksAndReservedPages) {
  Publish("a");
  EXPECT_TRUE(cache_.IsIdle());
  const LockId lock = Lock("a");
  EXPECT_FALSE(cache_.IsIdle());
  ASSERT_TRUE(Unlock(lock).ok());
  Allocate(1);
  EXPECT_FALSE(cache_.IsIdle());
}

TEST_F(SessionTest, CloseReleasesLocksAndFreesPages) {
  Publish("ab");
  Lock("ab");
  Lock("a");
  Allocate(3);
  EXPECT_FALSE(cache_.IsIdle());
  cache_.CloseSession(session_);
  EXPECT_TRUE(cache_.IsIdle());
  EXPECT_EQ(Counts().free, kUsable - 2);
  EXPECT_EQ(Counts().evictable, 2u);  // published pages stay cached
  EXPECT_EQ(cache_.Stats().locks, 0u);
  EXPECT_EQ(cache_.Stats().counters.sessions_closed, 1u);
}

TEST_F(SessionTest, ClosedOrUnknownIsRefusedEverywhereAndChangesNothing) {
  Publish("ab");
  cache_.CloseSession(session_);
  const auto before = Snapshot();
  for (const SessionId gone : {session_, SessionId(), SessionId(12345)}) {
    const auto tokens = Spell("ab");
    EXPECT_EQ(Outcome(cache_.Match({.session = gone,
                                    .ns = kNoNamespace,
                                    .tokens = tokens,
                                    .lock = true})),
              "SESSION_LOST");
    EXPECT_EQ(
        Outcome(cache_.Insert(
            {.session = gone, .ns = kNoNamespace, .tokens = {}, .pages = {}})),
        "SESSION_LOST");
    EXPECT_EQ(Outcome(cache_.Lock({gone, kNoNamespace, tokens})),
              "SESSION_LOST");
    EXPECT_EQ(Outcome(cache_.Unlock(gone, {})), "SESSION_LOST");
    EXPECT_EQ(Outcome(cache_.Allocate({gone, kNoNamespace, 1})),
              "SESSION_LOST");
    EXPECT_EQ(Outcome(cache_.Free(gone, {})), "SESSION_LOST");
    EXPECT_EQ(Outcome(cache_.AttachSession(gone, std::nullopt)),
              "SESSION_LOST");
    EXPECT_EQ(Outcome(cache_.ResumeSession(gone)), "SESSION_LOST");
    EXPECT_EQ(Outcome(cache_.CheckSession(gone)), "SESSION_LOST");
    cache_.CloseSession(gone);
    cache_.SuspendSession(gone, kNow);
    cache_.WriterGone(WriterId(7));
    EXPECT_EQ(Outcome(cache_.FreeQuarantine(SessionNumber(7))), "SESSION_LOST");
  }
  EXPECT_EQ(Snapshot(), before);
}

TEST_F(SessionTest, SuspendedKeepsWhatItHoldsUntilItsGraceEnds) {
  Publish("ab");
  Lock("ab");
  Allocate(2);
  cache_.SuspendSession(session_, kNow + absl::Seconds(2));
  cache_.ExpireSessions(kNow + absl::Seconds(1), kQuarantine);
  EXPECT_EQ(Counts().reserved, 2u);
  EXPECT_EQ(Counts().protected_, 2u);
  EXPECT_EQ(Outcome(cache_.CheckSession(session_)), "OK");
  cache_.ExpireSessions(kNow + absl::Seconds(2), kQuarantine);
  EXPECT_EQ(Outcome(cache_.CheckSession(session_)), "SESSION_LOST");
  EXPECT_EQ(cache_.Stats().counters.sessions_lost, 1u);
}

TEST_F(SessionTest, ResumedInTimeIsNotLost) {
  Allocate(2);
  cache_.SuspendSession(session_, kNow + absl::Seconds(2));
  ASSERT_EQ(Outcome(cache_.ResumeSession(session_)), "OK");
  cache_.ExpireSessions(kNow + absl::Hours(1), kQuarantine);
  EXPECT_EQ(Outcome(cache_.CheckSession(session_)), "OK");
  EXPECT_EQ(Counts().reserved, 2u);
}

TEST_F(SessionTest, NeverSuspendedIsNeverReaped) {
  cache_.ExpireSessions(absl::InfiniteFuture(), kQuarantine);
  EXPECT_EQ(Outcome(cache_.CheckSession(session_)), "OK");
}

TEST_F(SessionTest, LostWhileAttachedHasItsPagesQuarantinedAndItsLocksFreed) {
  Publish("ab");
  Lock("ab");
  Allocate(3);
  AttachUnwatched(session_);
  cache_.SuspendSession(session_, kNow);
  cache_.ExpireSessions(kNow, kQuarantine);
  EXPECT_EQ(Counts().quarantined, 3u);
  EXPECT_EQ(Counts().reserved, 0u);
  EXPECT_EQ(Counts().protected_, 0u);
  EXPECT_EQ(cache_.Stats().counters.quarantined_pages, 3u);

  cache_.ExpireSessions(kNow + kQuarantine - absl::Nanoseconds(1), kQuarantine);
  EXPECT_EQ(Counts().quarantined, 3u);
  cache_.ExpireSessions(kNow + kQuarantine, kQuarantine);
  EXPECT_EQ(Counts().quarantined, 0u);
  EXPECT_EQ(Counts().free, kUsable - 2);
}

TEST_F(SessionTest, EachLossIsToldOnceByTheNumberOfTheSession) {
  const SessionId second(77);
  const SessionNumber number = cache_.OpenSession(second, "");
  Attach(second, 2);
  cache_.SuspendSession(session_, kNow + absl::Seconds(1));
  cache_.SuspendSession(second, absl::InfiniteFuture());
  cache_.WriterGone(WriterId(2));
  EXPECT_THAT(cache_.ExpireSessions(kNow, kQuarantine).lost,
              ElementsAre(number));
  EXPECT_THAT(cache_.ExpireSessions(kNow + absl::Seconds(1), kQuarantine).lost,
              ElementsAre(SessionNumber(1)));
  EXPECT_THAT(cache_.ExpireSessions(kNow + absl::Hours(1), kQuarantine).lost,
              IsEmpty());
}

TEST_F(SessionTest, LostIsToldOnceNoPageOfItIsLeft) {
  Allocate(3);
  AttachUnwatched(session_);
  cache_.SuspendSession(session_, kNow);
  EXPECT_THAT(cache_.ExpireSessions(kNow, kQuarantine).gone, IsEmpty());
  EXPECT_THAT(cache_.ExpireSessions(kNow + kQuarantine, kQuarantine).gone,
              ElementsAre(session_));

  const SessionId without_pages(77);
  cache_.OpenSession(without_pages, "");
  AttachUnwatched(without_pages);
  cache_.SuspendSession(without_pages, kNow);
  EXPECT_THAT(cache_.ExpireSessions(kNow, kQuarantine).gone,
              ElementsAre(without_pages));
}

TEST_F(SessionTest, LostWithoutThePoolMappedHasItsPagesFreedAtOnce) {
  Allocate(3);
  cache_.SuspendSession(session_, kNow);
  cache_.ExpireSessions(kNow, kQuarantine);
  EXPECT_EQ(Counts().quarantined, 0u);
  EXPECT_EQ(Counts().free, kUsable);
}

TEST_F(SessionTest, QuarantinedPagesAreNotGivenOut) {
  Allocate(3);
  AttachUnwatched(session_);
  cache_.SuspendSession(session_, kNow);
  cache_.ExpireSessions(kNow, kQuarantine);
  const SessionId next = OpenSession();
  EXPECT_EQ(Outcome(cache_.Allocate({next, kNoNamespace, kUsable - 2})),
            "POOL_EXHAUSTED");
  EXPECT_EQ(Allocate(next, kUsable - 3).size(), kUsable - 3);
}

TEST_F(SessionTest, DeadProcessFreesItsQuarantinedPagesAndNoOthers) {
  const SessionId other = OpenSession();
  for (const SessionId id : {session_, other}) {
    Allocate(id, 3);
    Attach(id, id.value());
    cache_.SuspendSession(id, kNow);
  }
  cache_.ExpireSessions(kNow, kQuarantine);
  EXPECT_EQ(Counts().quarantined, 6u);
  cache_.WriterGone(WriterId(1));
  EXPECT_EQ(Counts().quarantined, 3u);
  EXPECT_EQ(cache_.Stats().counters.sessions_lost, 2u);
}

TEST_F(SessionTest, DeadProcessEndsABrokenSessionAtOnceWithoutQuarantine) {
  Publish("ab");
  Lock("ab");
  Allocate(3);
  Attach(session_, 1);
  cache_.SuspendSession(session_, kNow + absl::Hours(1));
  cache_.WriterGone(WriterId(1));
  EXPECT_EQ(Counts().quarantined, 0u);
  EXPECT_EQ(Counts().free, kUsable - 2);
  EXPECT_EQ(Counts().protected_, 0u);
  EXPECT_EQ(Outcome(cache_.CheckSession(session_)), "SESSION_LOST");
}

TEST_F(SessionTest, OutlivesTheProcessThatMappedThePoolWhileItsStreamLives) {
  Allocate(3);
  Attach(session_, 1);
  cache_.WriterGone(WriterId(1));
  EXPECT_EQ(Outcome(cache_.CheckSession(session_)), "OK");
  EXPECT_EQ(Counts().reserved, 3u);
  cache_.SuspendSession(session_, kNow + absl::Hours(1));
  EXPECT_EQ(Outcome(cache_.CheckSession(session_)), "SESSION_LOST");
  EXPECT_EQ(Counts().reserved, 0u);
  EXPECT_EQ(Counts().quarantined, 0u);
}

TEST_F(SessionTest, LostWhoseProcessLivesNeverHasItsPagesFreedByTime) {
  Allocate(3);
  Attach(session_, 1);
  cache_.SuspendSession(session_, kNow);
  cache_.ExpireSessions(kNow, kQuarantine);
  cache_.ExpireSessions(kNow + absl::Hours(1000), kQuarantine);
  EXPECT_EQ(Counts().quarantined, 3u);
  EXPECT_EQ(cache_.Stats().held_pages, 3u);
  cache_.WriterGone(WriterId(1));
  EXPECT_EQ(Counts().quarantined, 0u);
  EXPECT_EQ(cache_.Stats().held_pages, 0u);
}

TEST_F(SessionTest, LostWithSeveralProcessesKeepsItsPagesUntilTheLastEnds) {
  Allocate(3);
  Attach(session_, 1);
  Attach(session_, 2);
  cache_.SuspendSession(session_, kNow);
  cache_.ExpireSessions(kNow, kQuarantine);
  cache_.WriterGone(WriterId(1));
  cache_.ExpireSessions(kNow + absl::Hours(1000), kQuarantine);
  EXPECT_EQ(Counts().quarantined, 3u);
  cache_.WriterGone(WriterId(2));
  EXPECT_EQ(Counts().quarantined, 0u);
}

TEST_F(SessionTest, OneProcessHoldsThePagesOfEachSessionItMappedThePoolFor) {
  const SessionId other = OpenSession();
  for (const SessionId id : {session_, other}) {
    Allocate(id, 3);
    Attach(id, 1);
    cache_.SuspendSession(id, kNow);
  }
  cache_.ExpireSessions(kNow, kQuarantine);
  EXPECT_EQ(Counts().quarantined, 6u);
  cache_.WriterGone(WriterId(1));
  EXPECT_EQ(Counts().quarantined, 0u);
}

TEST_F(SessionTest, LostWithAProcessThatNobodyWatchesWaitsForBothEnds) {
  Allocate(3);
  AttachUnwatched(session_);
  Attach(session_, 1);
  cache_.SuspendSession(session_, kNow);
  cache_.ExpireSessions(kNow, kQuarantine);
  cache_.WriterGone(WriterId(1));
  EXPECT_EQ(Counts().quarantined, 3u) << "the time is not over";
  cache_.ExpireSessions(kNow + kQuarantine, kQuarantine);
  EXPECT_EQ(Counts().quarantined, 0u);
}

TEST_F(SessionTest, QuarantineNamesTheSessionAndItsWriters) {
  Allocate(3);
  Attach(session_, 1);
  Attach(session_, 2);
  cache_.SuspendSession(session_, kNow);
  cache_.ExpireSessions(kNow, kQuarantine);
  cache_.WriterGone(WriterId(1));
  cache_.ExpireSessions(kNow + absl::Minutes(1), kQuarantine);
  const QuarantineList list = cache_.ListQuarantine(10);
  ASSERT_EQ(list.sessions.size(), 1u);
  EXPECT_EQ(list.total, 1u);
  EXPECT_EQ(list.sessions[0].number, SessionNumber(1));
  EXPECT_EQ(list.sessions[0].client_name, "first");
  EXPECT_EQ(list.sessions[0].pages, 3u);
  EXPECT_EQ(list.sessions[0].age, absl::Minutes(1));
  EXPECT_THAT(list.sessions[0].writers, ElementsAre(WriterId(2)));
  EXPECT_FALSE(list.sessions[0].has_unwatched);
}

TEST_F(SessionTest, QuarantineIsGivenUpByTheNumberOfItsSessionAlone) {
  const SessionId other = OpenSession();
  for (const SessionId id : {session_, other}) {
    Allocate(id, 3);
    Attach(id, id.value());
    cache_.SuspendSession(id, kNow);
  }
  cache_.ExpireSessions(kNow, kQuarantine);
  EXPECT_EQ(cache_.FreeQuarantine(SessionNumber(1)).value(), 3u);
  EXPECT_EQ(Counts().quarantined, 3u);
  EXPECT_EQ(Outcome(cache_.FreeQuarantine(SessionNumber(1))), "SESSION_LOST");
  EXPECT_THAT(cache_.ExpireSessions(kNow, kQuarantine).gone,
              ElementsAre(session_));
}

TEST_F(SessionTest, QuarantineIsGivenUpByTheWorkerThatClosesItsLostSession) {
  Allocate(3);
  Attach(session_, 1);
  cache_.SuspendSession(session_, kNow);
  cache_.ExpireSessions(kNow, kQuarantine);
  cache_.CloseSession(session_);
  EXPECT_EQ(Counts().free, kUsable);
  EXPECT_EQ(cache_.Stats().counters.sessions_closed, 0u);
}

TEST_F(SessionTest, IsWatchedAnewWhenAnotherProcessMapsThePool) {
  Allocate(3);
  Attach(session_, 1);
  cache_.WriterGone(WriterId(1));
  Attach(session_, 2);
  cache_.SuspendSession(session_, kNow + absl::Hours(1));
  EXPECT_EQ(Counts().reserved, 3u);
}

TEST_F(SessionTest, EndOfOneLeavesTheOthersAlone) {
  Publish("ab");
  const SessionId other = OpenSession();
  const LockId theirs = Lock(other, "ab");
  const auto pages = Allocate(other, 2);
  Lock("ab");
  cache_.CloseSession(session_);
  EXPECT_EQ(Counts().protected_, 2u);
  EXPECT_EQ(Outcome(cache_.Unlock(other, std::vector{theirs})), "OK");
  EXPECT_EQ(Outcome(cache_.Free(other, pages)), "OK");
}

TEST_F(SessionTest, EndReleasesLocksNewestFirstSoThatWhatWasHeldLongestStays) {
  for (const char* prompt : {"a", "b", "c"}) {
    Publish(prompt);
    Lock(prompt);
  }
  cache_.CloseSession(session_);
  EXPECT_EQ(cache_.Evict(2), 2u);
  EXPECT_EQ(CachedPages("a"), 1u);
}

TEST_F(SessionTest, ThatAreLostTogetherReleaseTheirLocksOldestFirst) {
  const std::string letters = "abcdefgh";
  std::vector<SessionId> workers;
  for (const char letter : letters) {
    const std::string prompt(1, letter);
    Publish(prompt);
    workers.push_back(OpenSession());
    Lock(workers.back(), prompt);
  }
  for (SessionId worker : workers) cache_.SuspendSession(worker, kNow);
  cache_.ExpireSessions(kNow, kQuarantine);
  for (const char letter : letters) {
    EXPECT_EQ(cache_.Evict(1), 1u);
    EXPECT_EQ(CachedPages(std::string(1, letter)), 0u) << letter;
  }
}

TEST_F(SessionTest, NewSessionDoesNotOwnThePagesOfAnEarlierOne) {
  const auto pages = Allocate(2);
  cache_.CloseSession(session_);
  const SessionId next = OpenSession();
  EXPECT_EQ(Outcome(cache_.Free(next, pages)), "PAGE_NOT_OWNED");
}

}  // namespace
}  // namespace pando
