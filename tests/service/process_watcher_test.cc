#include "service/memory/process_watcher.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pando {
namespace {

using ::testing::ElementsAre;

// A process that does nothing until it is killed.
class Child {
 public:
  Child() : pid_(fork()) {
    if (pid_ == 0) {
      while (true) pause();
    }
  }
  ~Child() { Kill(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }

  void Kill() {
    if (killed_) return;
    killed_ = true;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

 private:
  const pid_t pid_;
  bool killed_ = false;
};

// The sessions that were reported, in order.
class Exits {
 public:
  ProcessWatcher::OnExit Recorder() {
    return [this](SessionId session) {
      absl::MutexLock lock(&mutex_);
      sessions_.push_back(session);
    };
  }

  std::vector<SessionId> WaitFor(size_t count) {
    const auto enough = [this, count] {
      mutex_.AssertHeld();
      return sessions_.size() >= count;
    };
    absl::MutexLock lock(&mutex_, absl::Condition(&enough));
    return sessions_;
  }

 private:
  absl::Mutex mutex_;
  std::vector<SessionId> sessions_ ABSL_GUARDED_BY(mutex_);
};

constexpr SessionId kOne{1};
constexpr SessionId kOther{2};

TEST(ProcessWatcher, ReportsTheSessionOfAKilledProcess) {
  Child child;
  Exits exits;
  const auto watcher = ProcessWatcher::Start(exits.Recorder()).value();
  ASSERT_TRUE(watcher->Watch(kOne, child.pid()).ok());
  child.Kill();
  EXPECT_THAT(exits.WaitFor(1), ElementsAre(kOne));
}

size_t OpenDescriptors() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry :
       std::filesystem::directory_iterator("/proc/self/fd")) {
    ++count;
  }
  return count;
}

TEST(ProcessWatcher, TakesOneDescriptorForAProcessThatAttachesAgainAndAgain) {
  Child child;
  Exits exits;
  const auto watcher = ProcessWatcher::Start(exits.Recorder()).value();
  ASSERT_TRUE(watcher->Watch(kOne, child.pid()).ok());
  const size_t before = OpenDescriptors();
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(watcher->Watch(kOne, child.pid()).ok());
  }
  EXPECT_EQ(OpenDescriptors(), before);
  child.Kill();
  EXPECT_THAT(exits.WaitFor(1), ElementsAre(kOne));
}

TEST(ProcessWatcher, WatchesNoProcessOfASessionWithOneThatItCannot) {
  Child child;
  Exits exits;
  const auto watcher = ProcessWatcher::Start(exits.Recorder()).value();
  EXPECT_FALSE(watcher->Watch(kOne, 0).ok());
  EXPECT_FALSE(watcher->Watch(kOne, child.pid()).ok());
  watcher->Forget(kOne);
  EXPECT_TRUE(watcher->Watch(kOne, child.pid()).ok());
}

TEST(ProcessWatcher, ReportsEachSessionOnceAndNoneThatIsForgotten) {
  Child forgotten, first, second;
  Exits exits;
  const auto watcher = ProcessWatcher::Start(exits.Recorder()).value();
  ASSERT_TRUE(watcher->Watch(SessionId{3}, forgotten.pid()).ok());
  ASSERT_TRUE(watcher->Watch(kOne, first.pid()).ok());
  ASSERT_TRUE(watcher->Watch(kOther, second.pid()).ok());
  watcher->Forget(SessionId{3});
  forgotten.Kill();
  first.Kill();
  exits.WaitFor(1);
  second.Kill();
  EXPECT_THAT(exits.WaitFor(2), ElementsAre(kOne, kOther));
}

TEST(ProcessWatcher, ASessionOfTwoProcessesIsReportedWhenBothAreGone) {
  Child first, second, sentinel;
  Exits exits;
  const auto watcher = ProcessWatcher::Start(exits.Recorder()).value();
  ASSERT_TRUE(watcher->Watch(kOne, first.pid()).ok());
  ASSERT_TRUE(watcher->Watch(kOne, second.pid()).ok());
  ASSERT_TRUE(watcher->Watch(kOther, sentinel.pid()).ok());
  first.Kill();
  sentinel.Kill();
  EXPECT_THAT(exits.WaitFor(1), ElementsAre(kOther));
  second.Kill();
  EXPECT_THAT(exits.WaitFor(2), ElementsAre(kOther, kOne));
}

TEST(ProcessWatcher, AProcessThatCannotBeSeenLeavesTheSessionUnwatched) {
  Child visible, sentinel;
  Exits exits;
  const auto watcher = ProcessWatcher::Start(exits.Recorder()).value();
  ASSERT_TRUE(watcher->Watch(kOne, visible.pid()).ok());
  EXPECT_EQ(watcher->Watch(kOne, 0).code(), absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(watcher->Watch(kOther, sentinel.pid()).ok());
  visible.Kill();
  sentinel.Kill();
  EXPECT_THAT(exits.WaitFor(1), ElementsAre(kOther));
}

TEST(ProcessWatcher, AProcessThatIsGoneAlreadyIsAnError) {
  Child child;
  child.Kill();
  Exits exits;
  const auto watcher = ProcessWatcher::Start(exits.Recorder()).value();
  EXPECT_FALSE(watcher->Watch(kOne, child.pid()).ok());
}

TEST(ProcessWatcher, StopsWithProcessesStillWatched) {
  Child child;
  Exits exits;
  auto watcher = ProcessWatcher::Start(exits.Recorder()).value();
  ASSERT_TRUE(watcher->Watch(kOne, child.pid()).ok());
  watcher.reset();
  child.Kill();
  EXPECT_THAT(exits.WaitFor(0), ElementsAre());
}

}  // namespace
}  // namespace pando
