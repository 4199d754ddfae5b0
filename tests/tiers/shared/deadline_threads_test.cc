#include "tiers/shared/deadline_threads.h"

#include <atomic>
#include <memory>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace pando {
namespace {

constexpr absl::Duration kLong = absl::Hours(1);
constexpr absl::Duration kShort = absl::Milliseconds(1);

TEST(DeadlineThreadsTest, AllPiecesOfWorkAreDone) {
  DeadlineThreads threads(3);
  std::atomic<int> done = 0;
  const std::vector<DeadlineThreads::Work> pieces(20, [&] { ++done; });
  EXPECT_TRUE(threads.Run(pieces, kLong));
  EXPECT_EQ(done, 20);
  EXPECT_TRUE(threads.Run({}, kLong));
}

TEST(DeadlineThreadsTest, WhatIsBegunLaterIsDoneAfterWhatWasBegunBefore) {
  absl::Notification go_on;
  std::atomic<int> done = 0;
  DeadlineThreads threads(1);
  const auto first = threads.Begin({[&] {
                                     go_on.WaitForNotification();
                                     ++done;
                                   }},
                                   kLong);
  const auto second = threads.Begin({[&] { EXPECT_EQ(done, 1); }}, kLong);
  go_on.Notify();
  EXPECT_TRUE(threads.End(second));
  EXPECT_TRUE(threads.End(first));
}

TEST(DeadlineThreadsTest, WhatHangsIsGivenUpAndWhatWaitsNeverBegins) {
  absl::Notification go_on;
  const auto begun = std::make_shared<std::atomic<int>>(0);
  DeadlineThreads threads(1);
  const std::vector<DeadlineThreads::Work> pieces(3, [&go_on, begun] {
    ++*begun;
    go_on.WaitForNotification();
  });
  // A slow machine may not even begin a piece within kShort.
  while (*begun == 0) EXPECT_FALSE(threads.Run(pieces, kShort));
  go_on.Notify();
  EXPECT_TRUE(threads.Run({[] {}}, kLong));
  EXPECT_EQ(*begun, 1);
}

TEST(DeadlineThreadsTest, OthersWorkWhileOneHangs) {
  absl::Notification go_on;
  absl::Notification hangs;
  DeadlineThreads threads(2);
  // Work that has not begun in time is never done, so it is tried again.
  while (!hangs.HasBeenNotified()) {
    EXPECT_FALSE(threads.Run({[&] {
                               hangs.Notify();
                               go_on.WaitForNotification();
                             }},
                             absl::Seconds(1)));
  }
  EXPECT_TRUE(threads.Run({[] {}, [] {}}, kLong));
  go_on.Notify();
}

}  // namespace
}  // namespace pando
