#include "tiers/tier_stores.h"

#include <cstddef>
#include <functional>
#include <limits>
#include <set>
#include <span>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "core/prefix_cache.h"
#include "events/event_publisher.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "os/turn.h"
#include "tiers/mover.h"

namespace pando {
namespace {

constexpr uint32_t kPageTokens = 4;

// A tier that knows which pages it has, but not their bytes.
class ListedTarget final : public StoreTarget {
 public:
  size_t capacity_pages() const override {
    return std::numeric_limits<size_t>::max();
  }
  size_t max_pages_per_store() const override { return 8; }
  size_t CountStored(std::span<const PageHash> run) const override {
    absl::MutexLock hold(&mutex_);
    size_t count = 0;
    while (count < run.size() && stored_.contains(run[count])) ++count;
    return count;
  }
  bool TouchIfStored(std::span<const PageHash> prompt) override {
    return CountStored(prompt) == prompt.size();
  }
  void BeginPrompt(uint64_t, std::span<const PageHash>) override {}
  void Store(uint64_t, std::span<const PageHash> prompt, size_t begin,
             std::span<const PageId> pages,
             const std::function<bool()>& confirm) override {
    if (!confirm()) return;
    absl::MutexLock hold(&mutex_);
    for (size_t i = 0; i < pages.size(); ++i) stored_.insert(prompt[begin + i]);
  }
  void CountDropped(uint64_t pages) override {
    absl::MutexLock hold(&mutex_);
    dropped_ += pages;
  }

  // Waits until `pages` pages are stored, and checks that there are no more.
  void AwaitPages(size_t pages) {
    absl::MutexLock hold(&mutex_);
    const auto has_pages = [this, pages] {
      mutex_.AssertHeld();
      return stored_.size() >= pages;
    };
    mutex_.Await(absl::Condition(&has_pages));
    EXPECT_EQ(stored_.size(), pages);
    EXPECT_EQ(dropped_, 0u);
  }

 private:
  mutable absl::Mutex mutex_;
  std::set<PageHash> stored_ ABSL_GUARDED_BY(mutex_);
  uint64_t dropped_ ABSL_GUARDED_BY(mutex_) = 0;
};

// A sink that shows when the publisher has begun to follow the cache.
class Beginning final : public EventSink {
 public:
  void Stored(const CachedPages&, std::span<const PageId>) override {}
  void Removed(const CachedPages&, std::span<const PageId>,
               EvictionReason) override {}
  void Cleared() override { has_begun_.Notify(); }
  bool EndTurn(const CachedPages*) override { return true; }

  void Await() { has_begun_.WaitForNotification(); }

 private:
  absl::Notification has_begun_;
};

// A cache, and the TierStores that follow it.
class Stores {
 public:
  // Pages are stored from their hit number `hit` on; with 0, at once.
  explicit Stores(uint32_t hit)
      : cache_({.page_tokens = kPageTokens,
                .capacity_pages = 64,
                .first_told_hit = hit}),
        mover_(&cache_, &turn_, {}, nullptr),
        stores_(&mover_, &target_, hit == 0),
        publisher_(&cache_, {&stores_, &beginning_}) {
    cache_.OpenSession(session_, "one");
    publisher_.Start();
    beginning_.Await();
  }

  // Inserts one page for each of `tokens`.
  void Insert(const std::vector<Token>& tokens) {
    const auto pages =
        cache_.Allocate({.session = session_,
                         .ns = {},
                         .pages = static_cast<uint32_t>(tokens.size())});
    ASSERT_TRUE(pages.ok());
    std::vector<Token> spelled;
    for (const Token token : tokens) {
      spelled.insert(spelled.end(), kPageTokens, token);
    }
    ASSERT_TRUE(cache_
                    .Insert({.session = session_,
                             .ns = {},
                             .tokens = spelled,
                             .pages = pages->pages})
                    .ok());
  }
  ListedTarget& target() { return target_; }

 private:
  const SessionId session_{1};
  PrefixCache cache_;
  Turn turn_;
  Mover mover_;
  ListedTarget target_;
  TierStores stores_;
  Beginning beginning_;
  EventPublisher publisher_;
};

TEST(TierStoresTest, WhatEntersTheCacheIsStoredAtOnce) {
  Stores stores(0);
  stores.Insert({1, 2});
  stores.target().AwaitPages(2);
  stores.Insert({1, 2, 3});
  stores.target().AwaitPages(3);
}

class HitTest : public testing::TestWithParam<uint32_t> {};

TEST_P(HitTest, WhatIsHitOftenEnoughIsStoredAndNothingElse) {
  Stores stores(GetParam());
  for (uint32_t i = 0; i < GetParam(); ++i) stores.Insert({1, 2});
  stores.Insert({5, 6, 7});
  stores.Insert({1, 2, 3});
  // Events come in order: the pages of tokens 5 to 7 would be stored by now if
  // they were stored at all.
  stores.target().AwaitPages(2);
  for (uint32_t i = 0; i < GetParam(); ++i) stores.Insert({1, 2, 3});
  stores.target().AwaitPages(3);
}

INSTANTIATE_TEST_SUITE_P(Hits, HitTest, testing::Values(1, 2));

}  // namespace
}  // namespace pando
