// Two threads of one worker publish the same held prompt. Meant for the thread
// sanitizer.

#include <numeric>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "core/prefix_cache.h"
#include "core/requests/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/cache_fixture.h"

namespace pando {
namespace {

using ::testing::AnyOf;
using ::testing::IsEmpty;

constexpr uint32_t kPageTokens = 4;
constexpr uint32_t kPages = 400;
constexpr SessionId kSession(1);
const NamespaceKey kNamespace;

// Inserts the prompt that the lock holds, page after page, until all of `pages`
// are in the tree or an insert fails. Returns the reason of a failure. A thread
// that finds the lock moved by the other thread tries again with the pages that
// follow.
std::optional<Reason> PublishAll(PrefixCache& cache, LockId lock,
                                 std::span<const PageId> pages) {
  while (!pages.empty()) {
    const auto insert = cache.Insert({.session = kSession,
                                      .ns = kNamespace,
                                      .tokens = {},
                                      .pages = pages.first(1),
                                      .anchor = lock,
                                      .lock_action = LockAction::kRelock,
                                      .prompt_tokens = kPageTokens});
    const auto reason = ReasonOf(insert.status());
    if (insert.ok()) {
      pages = pages.subspan(1);
    } else if (reason != Reason::kLockMoved) {
      return reason;
    }
  }
  return std::nullopt;
}

TEST(HeldPromptThreadsTest, EachPageOfAPromptIsTakenByOneOfTwoThreads) {
  PrefixCache cache({kPageTokens, 2 * kPages + 1});
  cache.OpenSession(kSession, "two threads");
  std::vector<Token> prompt(kPages * kPageTokens);
  std::iota(prompt.begin(), prompt.end(), Token{1});
  const auto match = cache.Match({.session = kSession,
                                  .ns = kNamespace,
                                  .tokens = prompt,
                                  .lock = true,
                                  .reserve_tokens = 2 * kPages * kPageTokens});
  ASSERT_TRUE(match.ok());
  const std::span pages(match->reserved);

  std::optional<Reason> theirs;
  std::thread other(
      [&] { theirs = PublishAll(cache, match->lock, pages.subspan(kPages)); });
  const auto mine = PublishAll(cache, match->lock, pages.first(kPages));
  other.join();

  // A thread that has reached the end of the prompt finds no held tokens.
  for (const auto end : {mine, theirs}) {
    EXPECT_THAT(end, AnyOf(std::nullopt, Reason::kInvalidField));
  }
  const auto cached =
      cache.Match({.session = {}, .ns = kNamespace, .tokens = prompt});
  ASSERT_TRUE(cached.ok());
  EXPECT_EQ(cached->matched_tokens, prompt.size());
  EXPECT_EQ(cache.Stats().counters.duplicate_pages, 0u);
  EXPECT_EQ(cache.Stats().pages.reserved, kPages);
  EXPECT_THAT(cache.CheckInvariants(), IsEmpty());
}

// The first call stores the prompt only after the repeated call has its answer.
TEST(HeldPromptThreadsTest, IsNotHeldByALockThatARepeatMovedMeanwhile) {
  constexpr int kRounds = 10;
  constexpr uint32_t kTokens = 1 << 18;
  PrefixCache cache({kPageTokens, kTokens / kPageTokens + 2});
  const std::vector<Token> prompt(kTokens, 7);
  for (int round = 1; round <= kRounds; ++round) {
    const SessionId session(static_cast<uint64_t>(round));
    cache.OpenSession(session, "retries");
    const auto admit = [&] {
      return cache.Match({.session = session,
                          .ns = kNamespace,
                          .tokens = prompt,
                          .lock = true,
                          .reserve_tokens = kTokens,
                          .request_id = RequestId(1)});
    };
    std::thread first([&] { ASSERT_TRUE(admit().ok()); });
    while (cache.Stats().locks == 0) std::this_thread::yield();
    const auto repeat = admit();
    ASSERT_TRUE(repeat.ok());
    const auto insert = [&](size_t page, uint32_t prompt_tokens,
                            std::span<const Token> sent) {
      return cache.Insert(
          {.session = session,
           .ns = kNamespace,
           .tokens = sent,
           .pages = std::span(repeat->reserved).subspan(page, 1),
           .anchor = repeat->lock,
           .lock_action = LockAction::kRelock,
           .prompt_tokens = prompt_tokens});
    };
    ASSERT_TRUE(insert(0, 0, std::span(prompt).first(kPageTokens)).ok());
    first.join();
    EXPECT_EQ(ReasonOf(insert(1, kPageTokens, {}).status()),
              Reason::kInvalidField)
        << "in round " << round;
    cache.CloseSession(session);
    cache.Flush();
  }
  EXPECT_THAT(cache.CheckInvariants(), IsEmpty());
}

// The call stores the prompt after making the lock. By then, the lock is gone.
TEST(HeldPromptThreadsTest, EndsWithItsSessionThoughTheCallIsNotOver) {
  constexpr int kRounds = 10;
  constexpr uint32_t kTokens = 1 << 20;
  PrefixCache cache({kPageTokens, kTokens / kPageTokens + 2});
  const std::vector<Token> prompt(kTokens, 7);
  for (int round = 1; round <= kRounds; ++round) {
    const SessionId session(static_cast<uint64_t>(round));
    cache.OpenSession(session, "leaves early");
    std::thread admission([&] {
      // The call reserves its pages in steps. The session may end between two
      // steps.
      EXPECT_THAT(Outcome(cache.Match({.session = session,
                                       .ns = kNamespace,
                                       .tokens = prompt,
                                       .lock = true,
                                       .reserve_tokens = kTokens})),
                  AnyOf("OK", "SESSION_LOST"));
    });
    while (cache.Stats().locks == 0) std::this_thread::yield();
    cache.CloseSession(session);
    admission.join();
    EXPECT_TRUE(cache.IsIdle()) << "in round " << round;
  }
  EXPECT_THAT(cache.CheckInvariants(), IsEmpty());
}

}  // namespace
}  // namespace pando
