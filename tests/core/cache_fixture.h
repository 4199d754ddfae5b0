#ifndef PANDO_TESTS_CORE_CACHE_FIXTURE_H_
#define PANDO_TESTS_CORE_CACHE_FIXTURE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/prefix_cache.h"
#include "core/requests/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/prompts.h"
#include "tests/core/stats_fields.h"

namespace pando {

inline const NamespaceKey kNoNamespace;

// Returns "OK", or the name of the reason.
inline std::string Outcome(const absl::Status& status) {
  if (status.ok()) return "OK";
  const auto reason = ReasonOf(status);
  return reason.has_value() ? std::string(ReasonName(*reason))
                            : status.ToString();
}
template <typename T>
std::string Outcome(const absl::StatusOr<T>& result) {
  return Outcome(result.status());
}

template <typename T>
std::vector<T> Concat(std::vector<T> a, const std::vector<T>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// A cache with pages of 4 tokens and a capacity of 16 pages, of which 15 can be
// given out. One session is open. Prompts are spelled with one letter for each
// page (prompts.h). After each test the fixture checks all invariants.
class CacheFixture : public testing::Test {
 protected:
  static constexpr uint32_t kPageTokens = 4;
  static constexpr uint32_t kCapacity = 16;
  static constexpr uint32_t kUsable = kCapacity - 1;

  CacheFixture() { cache_.OpenSession(session_, "first"); }

  void TearDown() override {
    EXPECT_THAT(cache_.CheckInvariants(), testing::IsEmpty());
  }

  static std::vector<Token> Spell(std::string_view letters, uint32_t tail = 0) {
    return SpellTokens(letters, kPageTokens, tail);
  }

  SessionId OpenSession() {
    const SessionId id(++last_session_);
    cache_.OpenSession(id, "another");
    return id;
  }

  // Attaches a writer of that number, which maps the pool.
  void Attach(SessionId session, uint64_t writer) {
    EXPECT_EQ(Outcome(cache_.AttachSession(session, WriterId(writer))), "OK");
  }
  // Attaches a writer that cannot be watched.
  void AttachUnwatched(SessionId session) {
    EXPECT_EQ(Outcome(cache_.AttachSession(session, std::nullopt)), "OK");
  }

  std::vector<PageId> Allocate(uint32_t pages) {
    return Allocate(session_, pages);
  }
  std::vector<PageId> Allocate(SessionId session, uint32_t pages) {
    auto allocated = cache_.Allocate({session, kNoNamespace, pages});
    EXPECT_EQ(Outcome(allocated), "OK") << allocated.status();
    return std::move(allocated).value_or(AllocateResult()).pages;
  }

  // Allocates pages for all letters and inserts them. Returns the pages.
  std::vector<PageId> Publish(std::string_view letters,
                              const NamespaceKey& ns = kNoNamespace) {
    const auto pages =
        Allocate(session_, static_cast<uint32_t>(letters.size()));
    EXPECT_EQ(Outcome(Insert(letters, pages, ns)), "OK");
    return pages;
  }

  absl::StatusOr<InsertResult> Insert(std::string_view letters,
                                      const std::vector<PageId>& pages,
                                      const NamespaceKey& ns = kNoNamespace) {
    const auto tokens = Spell(letters);
    return cache_.Insert(
        {.session = session_, .ns = ns, .tokens = tokens, .pages = pages});
  }

  // Inserts `letters` after the prefix that the lock `anchor` holds.
  absl::StatusOr<InsertResult> InsertAt(
      LockId anchor, std::string_view letters, const std::vector<PageId>& pages,
      LockAction action = LockAction::kKeep,
      const std::vector<PageId>& free_pages = {}) {
    const auto tokens = Spell(letters);
    return cache_.Insert({.session = session_,
                          .ns = kNoNamespace,
                          .tokens = tokens,
                          .pages = pages,
                          .anchor = anchor,
                          .lock_action = action,
                          .free_pages = free_pages});
  }

  // Returns the cached pages of the prompt, without counting as a use.
  std::vector<PageId> PagesOf(std::string_view letters,
                              const NamespaceKey& ns = kNoNamespace) {
    const auto tokens = Spell(letters);
    auto match = cache_.Match(
        {.session = {}, .ns = ns, .tokens = tokens, .touch = false});
    EXPECT_EQ(Outcome(match), "OK");
    return match->pages;
  }
  // Returns how many pages of the prompt are cached.
  size_t CachedPages(std::string_view letters,
                     const NamespaceKey& ns = kNoNamespace) {
    return PagesOf(letters, ns).size();
  }

  absl::StatusOr<MatchResult> MatchAndLock(std::string_view letters,
                                           uint32_t reserve_tokens = 0) {
    const auto tokens = Spell(letters);
    return cache_.Match({.session = session_,
                         .ns = kNoNamespace,
                         .tokens = tokens,
                         .lock = true,
                         .reserve_tokens = reserve_tokens});
  }
  void Touch(std::string_view letters) {
    const auto tokens = Spell(letters);
    EXPECT_EQ(Outcome(cache_.Match(
                  {.session = {}, .ns = kNoNamespace, .tokens = tokens})),
              "OK");
  }

  LockId Lock(std::string_view letters) { return Lock(session_, letters); }
  LockId Lock(SessionId session, std::string_view letters) {
    const auto lock = cache_.Lock({session, kNoNamespace, Spell(letters)});
    EXPECT_EQ(Outcome(lock), "OK");
    return lock.ok() ? lock->lock : LockId();
  }
  absl::Status Unlock(LockId lock) {
    return cache_.Unlock(session_, std::vector{lock});
  }

  PageCounts Counts() { return cache_.Stats().pages; }
  uint32_t Nodes() { return cache_.Stats().nodes; }

  // Returns every number of Stats(), to compare the cache before and after a
  // call. The count of failed allocations is set to zero, because a refused
  // call increases it.
  StatsSnapshot Snapshot() {
    CacheStats stats = cache_.Stats();
    stats.counters.allocation_failures = 0;
    return StatsFields(stats);
  }

  PrefixCache cache_{{kPageTokens, kCapacity}};
  const SessionId session_{1};

 private:
  uint64_t last_session_ = 1;
};

}  // namespace pando

#endif  // PANDO_TESTS_CORE_CACHE_FIXTURE_H_
