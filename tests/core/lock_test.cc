#include "tests/core/cache_fixture.h"

namespace pando {
namespace {

using LockTest = CacheFixture;

TEST_F(LockTest, ProtectsTheCachedPrefixAndUnlockRestores) {
  Publish("abcd");
  const auto lock = cache_.Lock({session_, kNoNamespace, Spell("abx", 1)});
  ASSERT_EQ(Outcome(lock), "OK");
  EXPECT_EQ(lock->locked_tokens, 2 * kPageTokens);
  EXPECT_EQ(Counts().protected_, 2u);
  EXPECT_EQ(Counts().evictable, 2u);
  ASSERT_EQ(Outcome(Unlock(lock->lock)), "OK");
  EXPECT_EQ(Counts().protected_, 0u);
  EXPECT_EQ(Counts().evictable, 4u);
}

TEST_F(LockTest, ProtectsAllAncestors) {
  Publish("ab");
  Insert("abcd", Concat(PagesOf("ab"), Allocate(2))).IgnoreError();
  Lock("abcd");
  EXPECT_EQ(Counts().protected_, 4u);
}

TEST_F(LockTest, IsCounted) {
  Publish("ab");
  const LockId first = Lock("ab");
  const LockId second = Lock("ab");
  EXPECT_NE(first, second);
  EXPECT_EQ(Counts().protected_, 2u);
  ASSERT_EQ(Outcome(Unlock(first)), "OK");
  EXPECT_EQ(Counts().protected_, 2u);
  ASSERT_EQ(Outcome(Unlock(second)), "OK");
  EXPECT_EQ(Counts().protected_, 0u);
}

TEST_F(LockTest, OfTheLongerPrefixOutlivesTheShorter) {
  Publish("abcd");
  const LockId longer = Lock("abcd");
  const LockId shorter = Lock("ab");
  ASSERT_EQ(Outcome(Unlock(longer)), "OK");
  EXPECT_EQ(Counts().protected_, 2u);
  ASSERT_EQ(Outcome(Unlock(shorter)), "OK");
  EXPECT_EQ(Counts().protected_, 0u);
}

TEST_F(LockTest, StaysValidWhenItsNodeIsSplitByAnother) {
  Publish("abcd");
  const LockId whole = Lock("abcd");
  const LockId part = Lock("ab");
  EXPECT_EQ(Nodes(), 2u);
  EXPECT_EQ(Counts().protected_, 4u);
  ASSERT_EQ(Outcome(Unlock(part)), "OK");
  EXPECT_EQ(Counts().protected_, 4u);
  ASSERT_EQ(Outcome(Unlock(whole)), "OK");
  EXPECT_EQ(Counts().evictable, 4u);
}

TEST_F(LockTest, OfNothingIsALockAllTheSame) {
  const LockId lock = Lock("abc");
  EXPECT_EQ(cache_.Stats().locks, 1u);
  EXPECT_EQ(Counts().protected_, 0u);
  ASSERT_EQ(Outcome(InsertAt(lock, "ab", Allocate(2), LockAction::kRelock)),
            "OK");
  EXPECT_EQ(Counts().protected_, 2u);
  ASSERT_EQ(Outcome(Unlock(lock)), "OK");
}

TEST_F(LockTest, UnlockOfSeveralIsAllOrNothing) {
  Publish("ab");
  const LockId held = Lock("ab");
  const LockId released = Lock("a");
  ASSERT_EQ(Outcome(Unlock(released)), "OK");
  const auto before = Snapshot();
  EXPECT_EQ(Outcome(cache_.Unlock(session_, std::vector{held, released})),
            "LOCK_UNKNOWN");
  EXPECT_EQ(Snapshot(), before);
  EXPECT_EQ(Outcome(cache_.Unlock(session_, std::vector{held})), "OK");
}

TEST_F(LockTest, UnlockingTwiceIsAnErrorAndChangesNothing) {
  Publish("ab");
  const LockId released = Lock("ab");
  Lock("ab");
  ASSERT_EQ(Outcome(Unlock(released)), "OK");
  const auto before = Snapshot();
  EXPECT_EQ(Outcome(Unlock(released)), "LOCK_UNKNOWN");
  EXPECT_EQ(Snapshot(), before);
}

TEST_F(LockTest, NamedTwiceInOneUnlockIsAnErrorAndChangesNothing) {
  Publish("ab");
  const LockId lock = Lock("ab");
  const auto before = Snapshot();
  EXPECT_EQ(Outcome(cache_.Unlock(session_, std::vector{lock, lock})),
            "LOCK_UNKNOWN");
  EXPECT_EQ(Snapshot(), before);
}

TEST_F(LockTest, OfAnotherSessionCannotBeReleasedOrUsed) {
  Publish("ab");
  const LockId theirs = Lock(OpenSession(), "ab");
  const auto mine = Allocate(1);
  const auto before = Snapshot();
  EXPECT_EQ(Outcome(Unlock(theirs)), "LOCK_UNKNOWN");
  EXPECT_EQ(Outcome(InsertAt(theirs, "c", mine)), "LOCK_UNKNOWN");
  EXPECT_EQ(Snapshot(), before);
}

TEST_F(LockTest, ANewLockIsNotMistakenForAReleasedOne) {
  Publish("ab");
  const LockId released = Lock("ab");
  ASSERT_EQ(Outcome(Unlock(released)), "OK");
  const LockId next = Lock("ab");
  EXPECT_NE(next, released);
  EXPECT_EQ(Outcome(Unlock(released)), "LOCK_UNKNOWN");
  EXPECT_EQ(Counts().protected_, 2u);
}

}  // namespace
}  // namespace pando
