// Many workers use one cache. No page has two owners, locked pages keep their
// content, and the counts are exact at the end. Meant for the thread sanitizer.
// PANDO_TEST_SEED and PANDO_TEST_OPERATIONS have the same meaning as in
// model_test.cc.

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/environment.h"
#include "tests/core/stress_worker.h"

namespace pando {
namespace {

using ::testing::IsEmpty;

constexpr uint32_t kWorkers = 8;
const PrefixCache::Options kOptions = {.page_tokens = 4,
                                       .capacity_pages = 60,
                                       .low_free_pages = 4,
                                       .high_free_pages = 8,
                                       .quota_classes = {{.name = "lora",
                                                          .pattern = "lora",
                                                          .floor_pages = 8,
                                                          .cap_pages = 40}},
                                       .clock = absl::GetCurrentTimeNanos};

class StressTest : public testing::Test {
 protected:
  StressTest() {
    for (uint32_t i = 0; i < kWorkers; ++i) {
      workers_.push_back(std::make_unique<StressWorker>(world_, seed_ + i));
    }
  }

  void ExpectExactAccounts() {
    PrefixCache& cache = world_.cache;
    for (const auto& worker : workers_) worker->Finish();
    cache.ExpireSessions(absl::InfiniteFuture(), absl::ZeroDuration());
    cache.ExpireSessions(absl::InfiniteFuture(), absl::ZeroDuration());
    for (const auto& worker : workers_) EXPECT_EQ(worker->failure(), "");
    EXPECT_THAT(cache.CheckInvariants(), IsEmpty());

    const CacheCounters counters = cache.Stats().counters;
    EXPECT_EQ(Sum(&StressWorker::hit_tokens), counters.hit_tokens);
    EXPECT_EQ(Sum(&StressWorker::allocated_pages), counters.allocated_pages);
    EXPECT_EQ(Sum(&StressWorker::inserted_pages), counters.inserted_pages);
    EXPECT_EQ(Sum(&StressWorker::locks_taken), counters.locks_taken);
    EXPECT_EQ(counters.locks_released, counters.locks_taken);
    EXPECT_EQ(Sum(&StressWorker::evicted_pages),
              counters.evicted_pages_on_request);
    EXPECT_EQ(Sum(&StressWorker::lost_sessions), counters.sessions_lost);
    EXPECT_EQ(Sum(&StressWorker::waits), counters.pending_waits);
    EXPECT_EQ(Sum(&StressWorker::cancelled_waits),
              counters.pending_waits_timed_out);
    EXPECT_EQ(world_.waits_over,
              counters.pending_waits - counters.pending_waits_timed_out);
    EXPECT_EQ(Sum(&StressWorker::repeats), counters.repeated_requests);
    EXPECT_GT(counters.hit_tokens, 0u);
    EXPECT_GT(counters.pending_waits, 0u);
    EXPECT_GT(counters.evicted_pages_for_allocation, 0u);

    const PageCounts pages = cache.Stats().pages;
    EXPECT_EQ(pages.evictable, counters.inserted_pages -
                                   counters.evicted_pages_for_allocation -
                                   counters.evicted_pages_on_request -
                                   counters.evicted_pages_for_watermark -
                                   counters.evicted_pages_for_quota);
    EXPECT_EQ(pages.protected_ + pages.reserved + pages.quarantined, 0u);
    cache.Flush();
    EXPECT_EQ(cache.Stats().pages.free, kOptions.capacity_pages - 1);
    EXPECT_EQ(cache.Stats().nodes + cache.Stats().namespaces, 0u);
    EXPECT_EQ(cache.Stats().sessions + cache.Stats().locks, 0u);
    EXPECT_EQ(cache.Stats().waits, 0u);
  }

  uint64_t Sum(uint64_t (StressWorker::*account)() const) const {
    uint64_t sum = 0;
    for (const auto& worker : workers_) sum += std::invoke(account, *worker);
    return sum;
  }

  const uint64_t seed_ = FromEnvironment("PANDO_TEST_SEED", 1);
  const uint64_t operations_of_a_worker_ =
      FromEnvironment("PANDO_TEST_OPERATIONS", 80'000) / kWorkers;
  StressWorld world_{kOptions};
  std::vector<std::unique_ptr<StressWorker>> workers_;
};

TEST_F(StressTest, WorkersTakingTurnsLeaveExactAccounts) {
  for (uint64_t i = 0; i < operations_of_a_worker_; ++i) {
    for (const auto& worker : workers_) worker->RunOperation();
  }
  ExpectExactAccounts();
}

TEST_F(StressTest, WorkersInThreadsLeaveExactAccounts) {
  std::vector<std::thread> threads;
  for (const auto& worker : workers_) {
    threads.emplace_back([this, &worker = *worker] {
      for (uint64_t i = 0; i < operations_of_a_worker_; ++i) {
        worker.RunOperation();
      }
    });
  }
  // An operator looks at the cache while the workers run, and a watcher takes
  // the events.
  world_.cache.StartEvents();
  std::vector<RawEvent> events;
  for (int i = 0; i < 200; ++i) {
    EXPECT_THAT(world_.cache.CheckInvariants(), IsEmpty());
    const PageCounts pages = world_.cache.Stats().pages;
    EXPECT_EQ(pages.free + pages.reserved + pages.evictable + pages.protected_ +
                  pages.quarantined + pages.padding,
              pages.capacity);
    world_.cache.TakeEvents(events);
    world_.cache.ExpireSessions(absl::UnixEpoch() + absl::Seconds(i),
                                absl::Seconds(1));
  }
  for (std::thread& thread : threads) thread.join();
  ExpectExactAccounts();
}

}  // namespace
}  // namespace pando
