// Tests of a process that takes over the ledger of an earlier one.

#include "core/nodes/page_ledger.h"

#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/nodes/segment.h"
#include "core/operators/earlier_pages.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/ledger_memory.h"
#include "tests/core/prompts.h"

namespace pando {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint32_t kPageTokens = 4;

// A cache on a ledger, with one session.
class Process {
 public:
  explicit Process(const PrefixCache::Options& options) : cache_(options) {
    cache_.OpenSession(session_, "worker");
  }

  std::vector<PageId> Reserve(uint32_t pages) {
    auto allocated = cache_.Allocate({session_, {}, pages});
    return allocated.ok() ? std::move(allocated)->pages : std::vector<PageId>();
  }
  std::vector<PageId> Publish(std::string_view letters,
                              const NamespaceKey& ns = {}) {
    const std::vector<Token> tokens = Spell(letters, ns);
    const auto pages = Reserve(static_cast<uint32_t>(letters.size()));
    const auto inserted = cache_.Insert(
        {.session = session_, .ns = ns, .tokens = tokens, .pages = pages});
    EXPECT_TRUE(inserted.ok()) << inserted.status();
    return pages;
  }
  std::vector<PageId> PagesOf(std::string_view letters,
                              const NamespaceKey& ns = {}) {
    const std::vector<Token> tokens = Spell(letters, ns);
    return cache_
        .Match({.session = {}, .ns = ns, .tokens = tokens, .touch = false})
        ->pages;
  }
  void Use(std::string_view letters) {
    const std::vector<Token> tokens = Spell(letters, {});
    EXPECT_TRUE(cache_.Match({.session = {}, .ns = {}, .tokens = tokens}).ok());
  }
  LockId Lock(std::string_view letters) {
    return cache_.Lock({session_, {}, Spell(letters, {})})->lock;
  }
  // Gives what an earlier process had reserved and locked to two sessions.
  EarlierPages TakeEarlierPages() {
    cache_.OpenSession(reserving_, "reserved earlier", /*is_internal=*/true);
    cache_.OpenSession(locking_, "locked earlier", /*is_internal=*/true);
    return cache_.Run(EarlierPages(reserving_, locking_));
  }
  void EndEarlierSessions() {
    cache_.CloseSession(reserving_);
    cache_.CloseSession(locking_);
  }
  PrefixCache& cache() { return cache_; }
  PageCounts Counts() { return cache_.Stats().pages; }

 private:
  static std::vector<Token> Spell(std::string_view letters,
                                  const NamespaceKey& ns) {
    return SpellTokens(letters, kPageTokens, ns.bigram ? 1 : 0);
  }

  PrefixCache cache_;
  const SessionId session_{1};
  const SessionId reserving_{2};
  const SessionId locking_{3};
};

// A pool of 15 usable pages whose process is followed by another one. The first
// one does not end: a process that dies runs no destructor.
class PageLedgerTest : public testing::Test {
 protected:
  Process& before() { return *before_; }
  Process& Next() {
    EXPECT_THAT(before_->cache().CheckInvariants(), IsEmpty());
    PageLedger::Complete(ledger_.memory());
    next_ =
        std::make_unique<Process>(LedgerMemory::With(kOptions, ledger_.Copy()));
    next_->TakeEarlierPages();
    EXPECT_THAT(next_->cache().CheckInvariants(), IsEmpty());
    return *next_;
  }

  // Returns where the segment that begins with this page has its facts.
  std::byte* FindFacts(std::span<std::byte> memory, PageId page) {
    PageLedger ledger(ledger_.pool(), memory);
    std::byte* found = nullptr;
    ledger.arena().Recover([&](std::byte* cell, size_t) {
      const auto& segment = *reinterpret_cast<const Segment*>(cell);
      if (segment.facts().check != 0 && segment.pages()[0] == page) {
        found = cell;
      }
      return true;
    });
    return found;
  }

  static constexpr uint32_t kUsable = 15;
  const PrefixCache::Options kOptions{.page_tokens = kPageTokens,
                                      .capacity_pages = kUsable + 1};
  LedgerMemory ledger_{kOptions};
  std::unique_ptr<Process> before_ =
      std::make_unique<Process>(LedgerMemory::With(kOptions, ledger_.memory()));
  std::unique_ptr<Process> next_;
};

TEST_F(PageLedgerTest, TheNextProcessFindsThePagesOfAllPrompts) {
  const auto pages = before().Publish("abcd");
  before().Publish("abxy");  // frees its pages of "ab", and splits the node
  before().Publish("mn");
  Process& next = Next();
  EXPECT_EQ(next.PagesOf("abcd"), pages);
  EXPECT_EQ(next.PagesOf("abxy"), before().PagesOf("abxy"));
  EXPECT_EQ(next.PagesOf("mn"), before().PagesOf("mn"));
  EXPECT_EQ(next.Counts().evictable, 8);
  EXPECT_EQ(next.Counts().free, 7);
}

TEST_F(PageLedgerTest, ItsPagesAreMatchedInTheirNamespaceOnly) {
  const NamespaceKey salted{.extra_key = "", .cache_salt = "salt"};
  const NamespaceKey pairs{.extra_key = "x", .bigram = true};
  const auto of_salted = before().Publish("ab", salted);
  const auto of_pairs = before().Publish("ab", pairs);
  Process& next = Next();
  EXPECT_EQ(next.PagesOf("ab", salted), of_salted);
  EXPECT_EQ(next.PagesOf("ab", pairs), of_pairs);
  EXPECT_THAT(next.PagesOf("ab"), IsEmpty());
  EXPECT_THAT(next.PagesOf("ab", {.cache_salt = "salt"}), IsEmpty());
  EXPECT_EQ(next.cache().Stats().namespaces, 2);
}

TEST_F(PageLedgerTest, EvictedPagesAreNotMatched) {
  const auto pages = before().Publish("abcdef");
  before().cache().Evict(2);
  EXPECT_THAT(Next().PagesOf("abcdef"),
              ElementsAre(pages[0], pages[1], pages[2], pages[3]));
  // From here on the rest of the prompt is in a segment of its own.
  before().cache().Evict(2);
  EXPECT_THAT(Next().PagesOf("abcdef"), ElementsAre(pages[0], pages[1]));
  before().cache().Evict(2);
  EXPECT_EQ(Next().Counts().free, kUsable);
  EXPECT_EQ(next_->cache().Stats().namespaces, 0);
}

TEST_F(PageLedgerTest, ASegmentOfSeveralNodesIsRepackedWhole) {
  const auto pages = before().Publish("abcdefgh");
  before().Publish("abz");
  before().Use("abcd");
  before().cache().Evict(6);
  Process& next = Next();
  EXPECT_EQ(next.PagesOf("abcdefgh"), before().PagesOf("abcdefgh"));
  EXPECT_EQ(next.PagesOf("abz"), before().PagesOf("abz"));
  EXPECT_EQ(next.Counts().evictable, before().Counts().evictable);
}

TEST_F(PageLedgerTest, ReservedPagesStayWithheldUntilTheirSessionEnds) {
  const auto reserved = before().Reserve(4);
  before().Publish("ab");
  Process& next = Next();
  EXPECT_EQ(next.Counts().reserved, 4);
  EXPECT_THAT(next.Reserve(kUsable - 4 - 2), testing::SizeIs(9));
  EXPECT_EQ(next.Counts().free, 0);
  next.EndEarlierSessions();
  EXPECT_EQ(next.Counts().free, 4);
  EXPECT_THAT(next.Reserve(4), testing::UnorderedElementsAreArray(reserved));
}

TEST_F(PageLedgerTest, LockedPagesAreNotEvictedUntilTheirSessionEnds) {
  before().Publish("abcdefgh");
  before().Publish("mn");
  before().Lock("abc");
  const LockId released = before().Lock("mn");
  before().Lock("abz");
  before().cache().Evict(2);  // repacks the locked prefix
  EXPECT_TRUE(before().cache().Unlock(SessionId(1), {{released}}).ok());
  Process& next = Next();
  EXPECT_EQ(next.Counts().protected_, before().Counts().protected_);
  next.cache().Evict(kUsable);
  EXPECT_THAT(next.PagesOf("abcdefgh"), testing::SizeIs(3));
  EXPECT_THAT(next.PagesOf("mn"), IsEmpty());
  next.EndEarlierSessions();
  next.cache().Evict(kUsable);
  EXPECT_EQ(next.Counts().free, kUsable);
}

TEST_F(PageLedgerTest, TheOrderOfEvictionIsTheSame) {
  for (const char* prompt : {"ab", "ac", "de", "fg", "ah"}) {
    before().Publish(prompt);
  }
  before().Use("ac");
  before().Use("de");
  Process& next = Next();
  while (before().cache().Evict(1) > 0) {
    ASSERT_EQ(next.cache().Evict(1), 1);
    for (const char* prompt : {"ab", "ac", "de", "fg", "ah"}) {
      ASSERT_EQ(next.PagesOf(prompt), before().PagesOf(prompt)) << prompt;
    }
  }
}

TEST_F(PageLedgerTest, ThreeProcessesInARowHaveTheSamePages) {
  const auto pages = before().Publish("pqrs");
  LedgerMemory ledger(kOptions);
  for (uint32_t process = 0; process < 3; ++process) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      Process next(LedgerMemory::With(kOptions, ledger.memory()));
      PageLedger::Complete(ledger.memory());
      next.Publish(process == 0 ? "pqrs" : std::string(process, 'a'));
      const bool is_right = next.PagesOf("pqrs") == pages &&
                            next.Counts().evictable == 4 + process;
      _exit(is_right ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << "process " << process;
  }
}

TEST_F(PageLedgerTest, AnEndInOrderLeavesThePages) {
  const auto pages = before().Publish("abcd");
  PageLedger::Complete(ledger_.memory());
  before_.reset();
  Process next(LedgerMemory::With(kOptions, ledger_.memory()));
  EXPECT_EQ(next.PagesOf("abcd"), pages);
}

// The process died after the segment was in the tree, and before the insert was
// answered.
TEST_F(PageLedgerTest, AnInsertThatWasCutOffLeavesItsPagesReserved) {
  before().Publish("ab");
  const auto pages = before().Publish("cd");
  PageLedger::Complete(ledger_.memory());
  const std::span<std::byte> copy = ledger_.Copy();
  PageLedger(ledger_.pool(), copy).records()[pages[1].value()].state =
      PageState::kReserved;
  Process next(LedgerMemory::With(kOptions, copy));
  EXPECT_EQ(next.TakeEarlierPages().reserved(), 2);
  EXPECT_THAT(next.PagesOf("cd"), IsEmpty());
  EXPECT_THAT(next.PagesOf("ab"), testing::SizeIs(2));
}

TEST_F(PageLedgerTest, TheModelStaysAsLongAsPagesDo) {
  before().cache().NoteModel("sha256:abc");
  before().Publish("ab");
  EXPECT_EQ(Next().cache().KeptModel(), "sha256:abc");
  before().cache().Evict(2);
  EXPECT_EQ(Next().cache().KeptModel(), "");
}

// Only what the ledger has can be found again, but a worker may read the rest.
TEST_F(PageLedgerTest, CachedPagesThatAreNotRecoveredAreWithheld) {
  before().Publish("ab");
  const auto pages = before().Publish("cd");
  PageLedger::Complete(ledger_.memory());
  const std::span<std::byte> copy = ledger_.Copy();
  std::byte* const facts = FindFacts(copy, pages[0]);
  ASSERT_NE(facts, nullptr);
  *facts ^= std::byte{1};  // of the check
  Process next(LedgerMemory::With(kOptions, copy));
  EXPECT_EQ(next.TakeEarlierPages().reserved(), 2);
  EXPECT_THAT(next.PagesOf("cd"), IsEmpty());
  EXPECT_THAT(next.PagesOf("ab"), testing::SizeIs(2));
  EXPECT_EQ(next.Counts().free, kUsable - 4);
}

TEST_F(PageLedgerTest, OnlyACompleteLedgerOfTheSamePoolIsTakenOver) {
  PageLedger::Pool pool = ledger_.pool();
  EXPECT_FALSE(PageLedger::IsOf(pool, ledger_.memory()));
  PageLedger::Complete(ledger_.memory());
  EXPECT_TRUE(PageLedger::IsOf(pool, ledger_.memory()));
  ++pool.memory_id;
  EXPECT_FALSE(PageLedger::IsOf(pool, ledger_.memory()));
  pool = ledger_.pool();
  pool.page_tokens *= 2;
  EXPECT_FALSE(PageLedger::IsOf(pool, ledger_.memory()));
  pool = ledger_.pool();
  ++pool.capacity_pages;
  EXPECT_FALSE(PageLedger::IsOf(pool, ledger_.memory()));
  EXPECT_FALSE(
      PageLedger::IsOf(ledger_.pool(), ledger_.memory().first(kLedgerPage)));
}

// The test also makes ledgers that no process could have left behind.
TEST_F(PageLedgerTest, AnyBytesLeaveTheCacheWhole) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  for (const char* prompt : {"abcd", "abce", "axyz", "m", "mn"}) {
    before().Publish(prompt);
  }
  PageLedger::Complete(ledger_.memory());
  std::vector<size_t> used = ledger_.Used();
  std::erase_if(used, [](size_t i) { return i < sizeof(LedgerStart); });
  int taken_over = 0;
  for (int round = 0; round < 60; ++round) {
    const std::span<std::byte> copy = ledger_.Copy();
    for (uint64_t changes = 1 + random() % 20; changes-- > 0;) {
      copy[used[random() % used.size()] + random() % 2] = std::byte(random());
    }
    if (!PageLedger::IsOf(ledger_.pool(), copy)) continue;
    ++taken_over;
    Process next(LedgerMemory::With(kOptions, copy));
    next.TakeEarlierPages();
    ASSERT_THAT(next.cache().CheckInvariants(), IsEmpty()) << round;
    next.Publish("q");
    next.cache().Evict(kUsable);
    ASSERT_THAT(next.cache().CheckInvariants(), IsEmpty()) << round;
  }
  EXPECT_GT(taken_over, 20);
}

}  // namespace
}  // namespace pando
