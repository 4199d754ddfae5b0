// Tests of the sessions that a process takes over from an earlier one.

#include "core/sessions/session_ledger.h"

#include <array>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/operators/earlier_pages.h"
#include "core/prefix_cache.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/ledger_memory.h"
#include "tests/core/prompts.h"

namespace pando {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint32_t kPageTokens = 4;
constexpr uint32_t kUsable = 31;
const PrefixCache::Options kOptions{
    .page_tokens = kPageTokens, .capacity_pages = kUsable + 1, .epoch = 11};
constexpr SessionId kWorker{101};
constexpr SessionId kOther{102};

std::vector<Token> Spell(std::string_view letters) {
  return SpellTokens(letters, kPageTokens, 0);
}

// Two workers of a process that is followed by another one. The first process
// does not end: a process that dies runs no destructor.
class SessionLedgerTest : public testing::Test {
 protected:
  SessionLedgerTest() {
    cache().OpenSession(kWorker, "worker");
    cache().OpenSession(kOther, "other");
  }

  // The process that serves now.
  PrefixCache& cache() { return *processes_.back(); }

  // The present process dies, and the next one takes over the ledger.
  void Die(bool keeps_sessions = true) {
    PageLedger::Complete(memory_);
    memory_ = ledger_.CopyOf(memory_);
    Start(memory_, keeps_sessions);
  }
  void Start(std::span<std::byte> ledger, bool keeps_sessions) {
    PrefixCache::Options options =
        LedgerMemory::With(kOptions, ledger, keeps_sessions);
    options.epoch = 12;
    processes_.push_back(std::make_unique<PrefixCache>(options));
    const SessionId reserved(1);
    const SessionId locked(2);
    cache().OpenSession(reserved, "reserved earlier", /*is_internal=*/true);
    cache().OpenSession(locked, "locked earlier", /*is_internal=*/true);
    cache().Run(EarlierPages(reserved, locked));
    EXPECT_THAT(cache().CheckInvariants(), IsEmpty());
  }
  // The present process dies while a call changes the session.
  void DieInACallOf(SessionId id) {
    const PageLedger ledger(ledger_.pool(), memory_);
    for (uint32_t cell = 1; cell <= kMaxLedgerSessions; ++cell) {
      SessionFacts& facts = ledger.session(cell);
      if (facts.id == id.value()) facts.state = SessionState::kChanging;
    }
    Die();
  }

  MatchResult Admit(std::string_view letters, RequestId id,
                    SessionId session = kWorker) {
    const std::vector<Token> tokens = Spell(letters);
    const auto match =
        cache().Match({.session = session,
                       .ns = {},
                       .tokens = tokens,
                       .lock = true,
                       .reserve_tokens = static_cast<uint32_t>(tokens.size()),
                       .request_id = id});
    EXPECT_TRUE(match.ok()) << match.status();
    return *match;
  }
  // Publishes pages that spell the prompt which the lock holds.
  absl::StatusOr<InsertResult> Publish(const std::vector<PageId>& pages,
                                       LockId lock, LockAction action,
                                       RequestId id = {}) {
    return cache().Insert(
        {.session = kWorker,
         .ns = {},
         .tokens = {},
         .pages = pages,
         .anchor = lock,
         .lock_action = action,
         .prompt_tokens = static_cast<uint32_t>(pages.size()) * kPageTokens,
         .request_id = id});
  }
  PageCounts Pages() { return cache().Stats().pages; }
  uint32_t Locks() {
    uint32_t locks = 0;
    for (const SessionInfo& info : cache().ListSessions(10).sessions) {
      if (!info.is_internal) locks += info.locks;
    }
    return locks;
  }

  LedgerMemory ledger_{kOptions};
  std::vector<std::unique_ptr<PrefixCache>> processes_ = FirstProcess();
  std::span<std::byte> memory_ = ledger_.memory();  // of the present process

 private:
  std::vector<std::unique_ptr<PrefixCache>> FirstProcess() {
    std::vector<std::unique_ptr<PrefixCache>> first;
    first.push_back(std::make_unique<PrefixCache>(
        LedgerMemory::With(kOptions, ledger_.memory(), true)));
    return first;
  }
};

TEST_F(SessionLedgerTest, ARequestGoesOnInTheNextProcess) {
  const MatchResult match = Admit("abc", RequestId(1));
  Die();
  EXPECT_THAT(cache().kept_sessions(), SizeIs(2));
  EXPECT_EQ(Pages().reserved, 3u);
  EXPECT_TRUE(Publish(match.reserved, match.lock, LockAction::kUnlock).ok());
  EXPECT_THAT(
      cache().Match({.session = {}, .ns = {}, .tokens = Spell("abc")})->pages,
      match.reserved);
  EXPECT_EQ(Pages().reserved, 0u);
  EXPECT_EQ(Pages().protected_, 0u);
  EXPECT_EQ(Locks(), 0u);
}

TEST_F(SessionLedgerTest, AChunkedPromptGoesOnAfterItsLastChunk) {
  const MatchResult match = Admit("abcd", RequestId(1));
  ASSERT_TRUE(
      Publish({match.reserved[0]}, match.lock, LockAction::kRelock).ok());
  Die();
  ASSERT_TRUE(
      Publish({match.reserved[1]}, match.lock, LockAction::kRelock).ok());
  EXPECT_EQ(Pages().protected_, 2u);
  const std::vector<PageId> rest(match.reserved.begin() + 2,
                                 match.reserved.end());
  EXPECT_TRUE(Publish(rest, match.lock, LockAction::kUnlock).ok());
  EXPECT_THAT(
      cache().Match({.session = {}, .ns = {}, .tokens = Spell("abcd")})->pages,
      match.reserved);
}

TEST_F(SessionLedgerTest, ARepeatedCallGetsTheAnswerOfTheEarlierProcess) {
  const MatchResult match = Admit("abc", RequestId(1));
  const auto allocated =
      cache().Allocate({kWorker, {}, 2, std::nullopt, RequestId(2)});
  const auto inserted =
      Publish(match.reserved, match.lock, LockAction::kRelock, RequestId(3));
  const auto locked =
      cache().Lock({kWorker, {}, Spell("ab"), {}, RequestId(4)});
  ASSERT_TRUE(
      cache().Free(kWorker, {{allocated->pages[0]}}, RequestId(5)).ok());
  ASSERT_TRUE(cache().Unlock(kWorker, {{match.lock}}, RequestId(6)).ok());
  Die();
  const PageCounts before = Pages();
  const MatchResult again = Admit("abc", RequestId(1));
  EXPECT_TRUE(again.is_repeat);
  EXPECT_EQ(again.lock, match.lock);
  EXPECT_EQ(again.reserved, match.reserved);
  EXPECT_EQ(
      cache().Allocate({kWorker, {}, 2, std::nullopt, RequestId(2)})->pages,
      allocated->pages);
  EXPECT_EQ(
      Publish(match.reserved, match.lock, LockAction::kRelock, RequestId(3))
          ->handle,
      inserted->handle);
  EXPECT_EQ(cache().Lock({kWorker, {}, Spell("ab"), {}, RequestId(4)})->lock,
            locked->lock);
  EXPECT_TRUE(
      cache().Free(kWorker, {{allocated->pages[0]}}, RequestId(5)).ok());
  EXPECT_TRUE(cache().Unlock(kWorker, {{match.lock}}, RequestId(6)).ok());
  EXPECT_EQ(Pages().reserved, before.reserved);
  EXPECT_EQ(Pages().protected_, before.protected_);
  EXPECT_EQ(Locks(), 1u);
}

TEST_F(SessionLedgerTest, OnlyTheSessionThatACallWasChangingIsLost) {
  Admit("abc", RequestId(1));
  const MatchResult other = Admit("xy", RequestId(1), kOther);
  DieInACallOf(kWorker);
  EXPECT_FALSE(cache().CheckSession(kWorker).ok());
  EXPECT_TRUE(cache().CheckSession(kOther).ok());
  // The pages that the lost one had reserved are withheld.
  EXPECT_EQ(Pages().reserved, 5u);
  cache().CloseSession(SessionId(1));
  EXPECT_EQ(Pages().reserved, 2u);
  EXPECT_TRUE(cache().Free(kOther, other.reserved).ok());
  EXPECT_TRUE(cache().Unlock(kOther, {{other.lock}}).ok());
  EXPECT_EQ(Pages().free, kUsable);
}

TEST_F(SessionLedgerTest, WhatASessionHadLockedStaysLockedIfItsLockIsNotKnown) {
  const MatchResult match = Admit("abc", RequestId(1));
  ASSERT_TRUE(Publish(match.reserved, match.lock, LockAction::kRelock).ok());
  const PageLedger ledger(ledger_.pool(), memory_);
  for (LockFacts& facts : ledger.locks().first(4)) facts.id = 0;
  DieInACallOf(kWorker);
  EXPECT_EQ(Pages().protected_, 3u);
  cache().CloseSession(SessionId(2));
  EXPECT_EQ(Pages().protected_, 0u);
}

TEST_F(SessionLedgerTest, OfTwoAnswersWithOneIdTheLaterOneIsKept) {
  const auto allocate = [this](uint64_t id) {
    return cache().Allocate({kWorker, {}, 1, std::nullopt, RequestId(id)});
  };
  ASSERT_TRUE(allocate(1).ok());
  for (uint64_t id = 1'000; id < 1'000 + Answers::kMaxAnswers; ++id) {
    ASSERT_TRUE(cache().Free(kWorker, {}, RequestId(id)).ok());
  }
  const auto later = allocate(1);
  ASSERT_FALSE(later->is_repeat);
  Die();
  EXPECT_EQ(allocate(1)->pages, later->pages);
}

TEST_F(SessionLedgerTest, ASessionWhoseWritersWereAllGoneIsLostWithItsStream) {
  ASSERT_TRUE(cache().AttachSession(kWorker, WriterId(7)).ok());
  cache().WriterGone(WriterId(7));
  Admit("abc", RequestId(1));
  Die();
  cache().SuspendSession(kWorker, absl::InfiniteFuture());
  EXPECT_FALSE(cache().CheckSession(kWorker).ok());
  EXPECT_EQ(Pages().free, kUsable);
}

TEST_F(SessionLedgerTest,
       AMatchThatWasAbandonedBeforeItHeldThePromptLosesNoSession) {
  const std::vector<Token> tokens = Spell("abc");
  const NamespaceKey ns;
  Matching match = cache().Start({.session = kWorker,
                                  .ns = ns,
                                  .tokens = tokens,
                                  .lock = true,
                                  .reserve_tokens = 3 * kPageTokens,
                                  .request_id = RequestId(1)});
  ASSERT_FALSE(cache().Step(match));
  ASSERT_TRUE(match.Abandon());
  ASSERT_TRUE(cache().Step(match));
  Die();
  EXPECT_TRUE(cache().CheckSession(kWorker).ok());
  EXPECT_TRUE(Admit("abc", RequestId(1)).is_repeat);
}

TEST_F(SessionLedgerTest, NoCallOfTheNextProcessUsesAnOldHandleOrLock) {
  const MatchResult match = Admit("abc", RequestId(1));
  const auto inserted =
      Publish(match.reserved, match.lock, LockAction::kUnlock);
  Die();
  const std::vector<Token> tokens = Spell("d");
  for (int i = 0; i < 3; ++i) {
    const LockId lock = Admit("xyz", RequestId(10 + i)).lock;
    EXPECT_NE(lock, match.lock);
    EXPECT_FALSE(cache().Unlock(kWorker, {{match.lock}}).ok());
    EXPECT_FALSE(cache()
                     .Match({.session = {},
                             .ns = {},
                             .tokens = tokens,
                             .after = inserted->handle})
                     .ok());
    EXPECT_TRUE(cache().Unlock(kWorker, {{lock}}).ok());
    Die();
  }
}

TEST_F(SessionLedgerTest, LocksOfAnEmptyPrefixGoOn) {
  const auto lock = cache().Lock({kWorker, {}, Spell("abc")});
  Die();
  EXPECT_EQ(Locks(), 1u);
  EXPECT_TRUE(cache().Unlock(kWorker, {{lock->lock}}).ok());
  EXPECT_EQ(cache().Stats().namespaces, 0u);
}

TEST_F(SessionLedgerTest, SessionsThatEndedAreGone) {
  Admit("abc", RequestId(1));
  cache().CloseSession(kWorker);
  Die();
  EXPECT_FALSE(cache().CheckSession(kWorker).ok());
  EXPECT_EQ(Pages().free, kUsable);
}

TEST_F(SessionLedgerTest, ANewSessionGetsNothingOfAnEarlierOneInItsCell) {
  Admit("abc", RequestId(1));
  DieInACallOf(kWorker);
  cache().OpenSession(SessionId(103), "next");
  Die();
  EXPECT_TRUE(cache().CheckSession(SessionId(103)).ok());
  for (const SessionInfo& info : cache().ListSessions(10).sessions) {
    if (info.client_name != "next") continue;
    EXPECT_EQ(info.reserved_pages, 0u);
    EXPECT_EQ(info.locks, 0u);
  }
}

TEST_F(SessionLedgerTest, TheEpochGoesOnWithTheSessions) {
  EXPECT_EQ(cache().epoch(), 11u);
  Die();
  EXPECT_EQ(cache().epoch(), 11u);
  Die(/*keeps_sessions=*/false);
  EXPECT_EQ(cache().epoch(), 12u);
  EXPECT_THAT(cache().kept_sessions(), IsEmpty());
}

TEST_F(SessionLedgerTest, NumbersOwnersAndWritersGoOn) {
  cache().SetSessionOwner(kWorker, "engine");
  ASSERT_TRUE(cache().AttachSession(kWorker, WriterId(7)).ok());
  Die();
  const auto& kept = cache().kept_sessions();
  ASSERT_THAT(kept, SizeIs(2));
  for (const auto& session : kept) {
    if (session.id != kWorker) continue;
    EXPECT_EQ(session.owner, "engine");
    EXPECT_THAT(session.writers, ElementsAre(WriterId(7)));
  }
  const SessionNumber next = cache().OpenSession(SessionId(104), "next");
  for (const SessionInfo& info : cache().ListSessions(10).sessions) {
    if (info.client_name != "next") EXPECT_GT(next, info.number);
  }
}

TEST_F(SessionLedgerTest, ASessionWithMoreAnswersThanItsRoomGoesOn) {
  for (uint64_t i = 0; i < 3'000; ++i) {
    const auto pages = cache().Allocate(
        {kWorker, {}, kUsable, std::nullopt, RequestId(2 * i + 1)});
    ASSERT_TRUE(pages.ok());
    ASSERT_TRUE(cache().Free(kWorker, pages->pages, RequestId(2 * i + 2)).ok());
  }
  Die();
  const auto again = cache().Allocate(
      {kWorker, {}, kUsable, std::nullopt, RequestId(2 * 2'999 + 1)});
  EXPECT_TRUE(again->is_repeat);
  EXPECT_EQ(Pages().free, kUsable);
}

// The bytes of the sessions, of their locks and of their answers may be
// anything: sessions are lost, but the cache is whole.
TEST_F(SessionLedgerTest, AnyBytesInTheFactsLeaveTheCacheWhole) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  const MatchResult match = Admit("abcdef", RequestId(1));
  ASSERT_TRUE(Publish({match.reserved[0]}, match.lock, LockAction::kRelock,
                      RequestId(2))
                  .ok());
  Admit("abx", RequestId(1), kOther);
  PageLedger::Complete(ledger_.memory());
  for (int i = 0; i < 300; ++i) {
    const std::span<std::byte> copy = ledger_.Copy();
    PageLedger ledger(ledger_.pool(), copy);
    const std::array<std::span<std::byte>, 4> parts = {
        std::as_writable_bytes(std::span(&ledger.session(1), 2)),
        std::as_writable_bytes(ledger.locks().first(3)),
        ledger.answers(1 + random() % 2, 0).first(400),
        std::as_writable_bytes(std::span(&ledger.counts(), 1))};
    const std::span<std::byte> part = parts[random() % parts.size()];
    for (uint64_t n = 1 + random() % 4; n > 0; --n) {
      part[random() % part.size()] = static_cast<std::byte>(random());
    }
    Start(copy, true);
    EXPECT_THAT(cache().CheckInvariants(), IsEmpty()) << i;
    processes_.pop_back();
  }
}

}  // namespace
}  // namespace pando
