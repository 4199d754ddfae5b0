#include "os/fair_mutex.h"

#include <atomic>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace pando {
namespace {

void AwaitThreads(const FairMutex& mutex, uint32_t threads) {
  while (mutex.threads() < threads) std::this_thread::yield();
}

TEST(FairMutexTest, AThreadThatLocksItAgainWaitsForThoseThatAskedBefore) {
  FairMutex mutex;
  std::atomic<bool> is_over = false;
  int held = 0;  // locks that the other thread took
  mutex.Lock();
  std::thread other([&] {
    while (!is_over) {
      FairMutexLock hold(&mutex);
      ++held;
    }
  });
  int passed_over = 0;
  for (int round = 0; round < 1'000; ++round) {
    AwaitThreads(mutex, 2);
    const int before = held;
    mutex.Unlock();
    mutex.Lock();
    passed_over += held == before;
  }
  is_over = true;
  mutex.Unlock();
  other.join();
  EXPECT_EQ(passed_over, 0);
}

TEST(FairMutexTest, ThreadsGetItInTheOrderInWhichTheyAsked) {
  constexpr uint32_t kThreads = 8;
  FairMutex mutex;
  std::vector<uint32_t> order;
  std::vector<std::thread> threads;
  mutex.Lock();
  for (uint32_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      FairMutexLock hold(&mutex);
      order.push_back(i);
    });
    AwaitThreads(mutex, i + 2);
  }
  mutex.Unlock();
  for (std::thread& thread : threads) thread.join();
  ASSERT_EQ(order.size(), kThreads);
  for (uint32_t i = 0; i < kThreads; ++i) EXPECT_EQ(order[i], i);
}

TEST(FairMutexTest, LosesNoWakeUpAndLetsOneInAtATime) {
  constexpr int kThreads = 4;
  constexpr int kHolds = 20'000;
  FairMutex mutex;
  int holds = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int hold = 0; hold < kHolds; ++hold) {
        FairMutexLock lock(&mutex);
        ++holds;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(holds, kThreads * kHolds);
}

}  // namespace
}  // namespace pando
