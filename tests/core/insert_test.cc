#include <cstring>

#include "tests/core/cache_fixture.h"

namespace pando {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using InsertTest = CacheFixture;

TEST_F(InsertTest, PublishesPagesForEverySession) {
  const auto pages = Allocate(3);
  const auto insert = Insert("abc", pages);
  ASSERT_EQ(Outcome(insert), "OK");
  EXPECT_EQ(insert->existing_tokens, 0u);
  EXPECT_THAT(insert->canonical_pages, IsEmpty());
  EXPECT_EQ(insert->freed_duplicates, 0u);
  EXPECT_EQ(PagesOf("abc"), pages);
  EXPECT_EQ(Counts().reserved, 0u);
  EXPECT_EQ(Counts().evictable, 3u);
}

TEST_F(InsertTest, IgnoresTheTokensAfterTheLastWholePage) {
  const auto pages = Allocate(2);
  const auto tokens = Spell("a", 3);
  const std::vector first = {pages[0]};
  ASSERT_EQ(Outcome(cache_.Insert({.session = session_,
                                   .ns = kNoNamespace,
                                   .tokens = tokens,
                                   .pages = first})),
            "OK");
  EXPECT_EQ(Counts().evictable, 1u);
  EXPECT_EQ(Counts().reserved, 1u);  // the page of the tail
}

TEST_F(InsertTest, OfNoWholePageChangesNothing) {
  ASSERT_EQ(Outcome(Insert("", {})), "OK");
  EXPECT_EQ(cache_.Stats().namespaces, 0u);
}

TEST_F(InsertTest, FreesDuplicatesAndAnswersWithTheCanonicalPages) {
  const auto canonical = Publish("ab");
  const auto mine = Allocate(3);
  const auto insert = Insert("abc", mine);
  ASSERT_EQ(Outcome(insert), "OK");
  EXPECT_EQ(insert->existing_tokens, 2 * kPageTokens);
  EXPECT_EQ(insert->canonical_pages, canonical);
  EXPECT_EQ(insert->freed_duplicates, 2u);
  EXPECT_THAT(PagesOf("abc"), ElementsAre(canonical[0], canonical[1], mine[2]));
  EXPECT_EQ(Counts().reserved, 0u);
  EXPECT_EQ(Counts().free, kUsable - 3);
}

TEST_F(InsertTest, KeepsDuplicatesOnRequest) {
  Publish("ab");
  const auto mine = Allocate(2);
  const auto tokens = Spell("ab");
  const auto insert = cache_.Insert({.session = session_,
                                     .ns = kNoNamespace,
                                     .tokens = tokens,
                                     .pages = mine,
                                     .keep_duplicates = true});
  ASSERT_EQ(Outcome(insert), "OK");
  EXPECT_EQ(insert->freed_duplicates, 0u);
  EXPECT_EQ(Counts().reserved, 2u);
  EXPECT_EQ(Outcome(cache_.Free(session_, mine)), "OK");
}

TEST_F(InsertTest, TakesTheCachesOwnPagesForWhatExists) {
  const auto canonical = Publish("ab");
  const auto mine = Allocate(1);
  const auto insert = Insert("abc", Concat(canonical, mine));
  ASSERT_EQ(Outcome(insert), "OK");
  EXPECT_EQ(insert->freed_duplicates, 0u);
  EXPECT_EQ(cache_.Stats().counters.duplicate_pages, 0u);
  EXPECT_EQ(PagesOf("abc"), Concat(canonical, mine));
}

TEST_F(InsertTest, MayMixOwnAndCanonicalPages) {
  const auto canonical = Publish("ab");
  const auto mine = Allocate(1);
  const auto insert = Insert("ab", {mine[0], canonical[1]});
  ASSERT_EQ(Outcome(insert), "OK");
  EXPECT_EQ(insert->freed_duplicates, 1u);
  EXPECT_EQ(insert->canonical_pages, canonical);
}

TEST_F(InsertTest, SplitsANodeWhereTheNewPagesBranchOff) {
  const auto trunk = Publish("abcd");
  EXPECT_EQ(Nodes(), 1u);
  const auto branch = Allocate(1);
  ASSERT_EQ(Outcome(Insert("abe", {trunk[0], trunk[1], branch[0]})), "OK");
  EXPECT_EQ(Nodes(), 3u);
  EXPECT_EQ(PagesOf("abcd"), trunk);
  EXPECT_EQ(Counts().evictable, 5u);
}

TEST_F(InsertTest, AgainChangesNoStructure) {
  const auto pages = Publish("abcd");
  ASSERT_EQ(Outcome(Insert("ab", {pages[0], pages[1]})), "OK");
  EXPECT_EQ(Nodes(), 1u);
}

TEST_F(InsertTest, AnchoredCarriesOnlyTheTokensAfterTheLock) {
  const auto front = Publish("ab");
  const LockId lock = Lock("ab");
  const auto rest = Allocate(2);
  const auto insert = InsertAt(lock, "cd", rest);
  ASSERT_EQ(Outcome(insert), "OK");
  EXPECT_EQ(insert->existing_tokens, 0u);
  EXPECT_EQ(PagesOf("abcd"), Concat(front, rest));
  EXPECT_EQ(Counts().protected_, 2u);  // the lock stays where it is
}

TEST_F(InsertTest, AnchoredAnswersWithTheOverlapAfterTheLock) {
  const auto pages = Publish("abc");
  const LockId lock = Lock("ab");
  const auto mine = Allocate(2);
  const auto insert = InsertAt(lock, "cd", mine);
  ASSERT_EQ(Outcome(insert), "OK");
  EXPECT_EQ(insert->existing_tokens, kPageTokens);
  EXPECT_THAT(insert->canonical_pages, ElementsAre(pages[2]));
  EXPECT_EQ(insert->freed_duplicates, 1u);
}

TEST_F(InsertTest, AnchoredStaysValidWhenItsNodeIsSplit) {
  const auto pages = Publish("abcd");
  const LockId lock = Lock("abcd");
  ASSERT_EQ(Outcome(Insert("ae", {pages[0], Allocate(1)[0]})), "OK");
  const LockId shorter = Lock("ab");
  const auto rest = Allocate(1);
  ASSERT_EQ(Outcome(InsertAt(lock, "e", rest)), "OK");
  EXPECT_EQ(PagesOf("abcde"), Concat(pages, rest));
  EXPECT_EQ(Counts().protected_, 4u);
  EXPECT_EQ(Outcome(Unlock(lock)), "OK");
  EXPECT_EQ(Counts().protected_, 2u);
  EXPECT_EQ(Outcome(Unlock(shorter)), "OK");
  EXPECT_EQ(Counts().protected_, 0u);
}

TEST_F(InsertTest, RelockCarriesALockAlongAChunkedPrefill) {
  const LockId lock = MatchAndLock("", 0)->lock;
  std::vector<PageId> all;
  for (const char* chunk : {"ab", "c", "def"}) {
    const auto pages = Allocate(static_cast<uint32_t>(strlen(chunk)));
    ASSERT_EQ(Outcome(InsertAt(lock, chunk, pages, LockAction::kRelock)), "OK");
    all = Concat(all, pages);
    EXPECT_EQ(Counts().protected_, all.size());
    EXPECT_EQ(Counts().evictable, 0u);
  }
  EXPECT_EQ(PagesOf("abcdef"), all);
  EXPECT_EQ(cache_.Stats().locks, 1u);
  ASSERT_EQ(Outcome(Unlock(lock)), "OK");
  EXPECT_EQ(Counts().protected_, 0u);
}

TEST_F(InsertTest, RelockOverExistingPagesSplitsWhereItEnds) {
  Publish("abcd");
  const LockId lock = Lock("a");
  ASSERT_EQ(Outcome(InsertAt(lock, "b", Allocate(1), LockAction::kRelock)),
            "OK");
  EXPECT_EQ(Counts().protected_, 2u);
  EXPECT_EQ(Counts().evictable, 2u);
}

TEST_F(InsertTest, RelockWithoutTokensLeavesTheLockWhereItIs) {
  Publish("ab");
  const LockId lock = Lock("a");
  ASSERT_EQ(Outcome(InsertAt(lock, "", {}, LockAction::kRelock)), "OK");
  EXPECT_EQ(Counts().protected_, 1u);
  EXPECT_EQ(Outcome(Unlock(lock)), "OK");
}

TEST_F(InsertTest, FinalInsertPublishesUnlocksAndFreesInOneStep) {
  Publish("ab");
  const auto match = MatchAndLock("abcd", 6 * kPageTokens);
  ASSERT_EQ(match->reserved.size(), 4u);
  const auto& reserved = match->reserved;
  ASSERT_EQ(Outcome(InsertAt(match->lock, "cd", {reserved[0], reserved[1]},
                             LockAction::kUnlock, {reserved[2], reserved[3]})),
            "OK");
  EXPECT_EQ(CachedPages("abcd"), 4u);
  EXPECT_EQ(Counts().reserved, 0u);
  EXPECT_EQ(Counts().protected_, 0u);
  EXPECT_EQ(cache_.Stats().locks, 0u);
  EXPECT_EQ(Outcome(Unlock(match->lock)), "LOCK_UNKNOWN");
}

TEST_F(InsertTest, OfTwoWorkersWithTheSamePrefixTheFirstIsCanonical) {
  const SessionId other = OpenSession();
  const auto mine = Allocate(2);
  const auto theirs = Allocate(other, 2);
  ASSERT_EQ(Outcome(Insert("ab", mine)), "OK");
  const auto tokens = Spell("ab");
  const auto insert = cache_.Insert({.session = other,
                                     .ns = kNoNamespace,
                                     .tokens = tokens,
                                     .pages = theirs});
  ASSERT_EQ(Outcome(insert), "OK");
  EXPECT_EQ(insert->canonical_pages, mine);
  EXPECT_EQ(Counts().free, kUsable - 2);
}

}  // namespace
}  // namespace pando
