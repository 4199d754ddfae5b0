// Tests of races between workers, in both orders. Whichever call comes first,
// both workers can go on with the outcome. Inside the cache calls run one after
// another, so a test only needs to choose their order.

#include <functional>
#include <string_view>
#include <vector>

#include "tests/core/cache_fixture.h"

namespace pando {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class InterleavingTest : public CacheFixture {
 protected:
  using Step = std::function<void()>;

  absl::StatusOr<MatchResult> Admit(SessionId session,
                                    std::string_view letters) {
    const auto tokens = Spell(letters);
    return cache_.Match(
        {.session = session,
         .ns = kNoNamespace,
         .tokens = tokens,
         .lock = true,
         .reserve_tokens = static_cast<uint32_t>(tokens.size())});
  }
  absl::StatusOr<InsertResult> Finish(SessionId session,
                                      const MatchResult& admission,
                                      std::string_view letters) {
    const auto tokens = Spell(letters);
    return cache_.Insert(
        {.session = session,
         .ns = kNoNamespace,
         .tokens = std::span(tokens).subspan(admission.matched_tokens),
         .pages = admission.reserved,
         .anchor = admission.lock,
         .lock_action = LockAction::kUnlock});
  }

  const SessionId other_ = OpenSession();
};

TEST_F(InterleavingTest, MatchThenEvict) {
  const auto pages = Publish("abcd");
  const auto match = MatchAndLock("abcd");
  EXPECT_EQ(cache_.Evict(kUsable), 0u);
  EXPECT_EQ(match->pages, pages);
  EXPECT_EQ(PagesOf("abcd"), pages);
}

TEST_F(InterleavingTest, EvictThenMatch) {
  Publish("abcd");
  EXPECT_EQ(cache_.Evict(3), 3u);
  const auto match = MatchAndLock("abcd", 4 * kPageTokens);
  EXPECT_EQ(match->pages.size(), 1u);
  EXPECT_EQ(match->reserved.size(), 3u);
}

TEST_F(InterleavingTest, MatchWithoutALockThenEvict) {
  Publish("abcd");
  const PrefixHandle handle = MatchAndLock("ab")->handle;
  const auto tokens = Spell("abcd");
  const auto match = cache_.Match({.ns = kNoNamespace, .tokens = tokens});
  EXPECT_EQ(cache_.Evict(kUsable), 2u);
  // The handle from a match without a lock is gone, and the next call says so.
  const auto after = [&](const PrefixHandle& from) {
    return Outcome(
        cache_.Match({.ns = kNoNamespace, .tokens = {}, .after = from}));
  };
  EXPECT_EQ(after(match->handle), "HANDLE_GONE");
  EXPECT_EQ(after(handle), "OK");
}

TEST_F(InterleavingTest, AllocationsThatNeedTheSameEvictablePages) {
  for (const bool other_first : {false, true}) {
    Publish(std::string(kUsable, 'a'));
    const SessionId first = other_first ? other_ : session_;
    const SessionId second = other_first ? session_ : other_;
    EXPECT_EQ(Outcome(Admit(first, "bcdefghijk")), "OK");
    EXPECT_EQ(Outcome(Admit(second, "lmnopqrstu")), "POOL_EXHAUSTED");
    EXPECT_EQ(Counts().reserved, 10u);
    for (const SessionId session : {session_, other_}) {
      cache_.CloseSession(session);
      cache_.OpenSession(session, "again");
    }
    cache_.Flush();
  }
}

TEST_F(InterleavingTest, InsertsOfOnePrefixInEitherOrder) {
  for (const bool other_first : {false, true}) {
    const auto mine = Admit(session_, "abc");
    const auto theirs = Admit(other_, "abd");
    const Step finish_mine = [&] {
      const auto insert = Finish(session_, *mine, "abc");
      ASSERT_EQ(Outcome(insert), "OK");
      EXPECT_EQ(insert->canonical_pages.size(), other_first ? 2u : 0u);
      EXPECT_EQ(insert->freed_duplicates, other_first ? 2u : 0u);
    };
    const Step finish_theirs = [&] {
      const auto insert = Finish(other_, *theirs, "abd");
      ASSERT_EQ(Outcome(insert), "OK");
      EXPECT_EQ(insert->canonical_pages.size(), other_first ? 0u : 2u);
      EXPECT_EQ(insert->freed_duplicates, other_first ? 0u : 2u);
    };
    if (other_first) finish_theirs();
    finish_mine();
    if (!other_first) finish_theirs();
    const auto& canonical = other_first ? theirs->reserved : mine->reserved;
    EXPECT_EQ(PagesOf("ab"),
              std::vector(canonical.begin(), canonical.begin() + 2));
    EXPECT_EQ(Counts().evictable, 4u);
    EXPECT_EQ(Counts().reserved, 0u);
    cache_.Flush();
  }
}

TEST_F(InterleavingTest, ALongerInsertThenAShorterOneAndTheReverse) {
  for (const bool longer_first : {false, true}) {
    const auto longer = Admit(session_, "abcd");
    const auto shorter = Admit(other_, "ab");
    if (longer_first) {
      ASSERT_EQ(Outcome(Finish(session_, *longer, "abcd")), "OK");
    }
    ASSERT_EQ(Outcome(Finish(other_, *shorter, "ab")), "OK");
    if (!longer_first) {
      ASSERT_EQ(Outcome(Finish(session_, *longer, "abcd")), "OK");
    }
    EXPECT_EQ(CachedPages("abcd"), 4u);
    EXPECT_EQ(Counts().evictable, 4u);
    cache_.Flush();
  }
}

TEST_F(InterleavingTest, InsertThenTheSessionsDeath) {
  const auto admission = Admit(session_, "abc");
  ASSERT_EQ(Outcome(Finish(session_, *admission, "abc")), "OK");
  cache_.CloseSession(session_);
  EXPECT_EQ(PagesOf("abc"), admission->reserved);
  EXPECT_EQ(Counts().free, kUsable - 3);
}

TEST_F(InterleavingTest, TheSessionsDeathThenInsert) {
  const auto admission = Admit(session_, "abc");
  cache_.CloseSession(session_);
  EXPECT_EQ(Outcome(Finish(session_, *admission, "abc")), "SESSION_LOST");
  EXPECT_EQ(CachedPages("abc"), 0u);
  EXPECT_EQ(Counts().free, kUsable);
}

TEST_F(InterleavingTest, DeathBetweenTwoChunksKeepsTheFirst) {
  AttachUnwatched(session_);
  const auto admission = Admit(session_, "abc");
  ASSERT_EQ(Outcome(InsertAt(admission->lock, "a", {admission->reserved[0]},
                             LockAction::kRelock)),
            "OK");
  cache_.SuspendSession(session_, absl::UnixEpoch());
  cache_.ExpireSessions(absl::UnixEpoch(), absl::Seconds(9));
  EXPECT_EQ(Outcome(InsertAt(admission->lock, "b", {admission->reserved[1]})),
            "SESSION_LOST");
  EXPECT_THAT(PagesOf("abc"), ElementsAre(admission->reserved[0]));
  EXPECT_EQ(Counts().evictable, 1u);
  EXPECT_EQ(Counts().quarantined, 2u);
}

TEST_F(InterleavingTest, EvictThenAPolicySwitchAndTheReverse) {
  for (const bool switch_first : {false, true}) {
    cache_.SetEvictionPolicy(EvictionPolicyKind::kLru);
    Publish("ab");
    Publish("cd");
    Publish("ef");
    if (switch_first) cache_.SetEvictionPolicy(EvictionPolicyKind::kMru);
    EXPECT_EQ(cache_.Evict(1), 1u);
    EXPECT_EQ(CachedPages("ab"), switch_first ? 2u : 1u);
    EXPECT_EQ(CachedPages("ef"), switch_first ? 1u : 2u);
    if (!switch_first) cache_.SetEvictionPolicy(EvictionPolicyKind::kMru);
    EXPECT_EQ(cache_.Evict(kUsable), 5u);
  }
}

TEST_F(InterleavingTest, APolicySwitchWhileSomeOfAPathIsLocked) {
  Publish("abcd");
  const LockId lock = Lock("ab");
  cache_.SetEvictionPolicy(EvictionPolicyKind::kSlru);
  EXPECT_EQ(cache_.Evict(1), 1u);
  ASSERT_EQ(Outcome(Unlock(lock)), "OK");
  cache_.SetEvictionPolicy(EvictionPolicyKind::kLru);
  EXPECT_EQ(cache_.Evict(kUsable), 3u);
}

TEST_F(InterleavingTest, FlushThenFinishAndTheReverse) {
  for (const bool flush_first : {false, true}) {
    Publish("ab");
    const auto admission = Admit(session_, "abc");
    if (flush_first) cache_.Flush();
    ASSERT_EQ(Outcome(Finish(session_, *admission, "abc")), "OK");
    if (!flush_first) cache_.Flush();
    EXPECT_EQ(CachedPages("abc"), flush_first ? 3u : 0u);
    cache_.Flush();
  }
}

TEST_F(InterleavingTest, UnlockThenRelockOfTheSameLock) {
  const auto admission = Admit(session_, "ab");
  ASSERT_EQ(Outcome(Unlock(admission->lock)), "OK");
  EXPECT_EQ(Outcome(InsertAt(admission->lock, "ab", admission->reserved,
                             LockAction::kRelock)),
            "LOCK_UNKNOWN");
  EXPECT_THAT(PagesOf("ab"), IsEmpty());
}

}  // namespace
}  // namespace pando
