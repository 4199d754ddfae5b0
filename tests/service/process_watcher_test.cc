#include "service/memory/process_watcher.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pando {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

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

// Records the writers that the watcher reports as ended, in order.
class Exits {
 public:
  ProcessWatcher::OnExit Recorder() {
    return [this](WriterId writer) {
      absl::MutexLock lock(&mutex_);
      writers_.push_back(writer);
    };
  }

  std::vector<WriterId> WaitFor(size_t count) {
    const auto enough = [this, count] {
      mutex_.AssertHeld();
      return writers_.size() >= count;
    };
    absl::MutexLock lock(&mutex_, absl::Condition(&enough));
    return writers_;
  }

 private:
  absl::Mutex mutex_;
  std::vector<WriterId> writers_ ABSL_GUARDED_BY(mutex_);
};

constexpr WriterId kOne{1};
constexpr WriterId kOther{2};

TEST(ProcessWatcher, TellsTheEndOfAKilledProcess) {
  Child child;
  Exits exits;
  const auto watcher = ProcessWatcher::Start(exits.Recorder()).value();
  ASSERT_TRUE(watcher->Watch(kOne, child.pid()).ok());
  EXPECT_TRUE(watcher->IsLiving(kOne));
  child.Kill();
  EXPECT_FALSE(watcher->IsLiving(kOne));
  EXPECT_THAT(exits.WaitFor(1), ElementsAre(kOne));
}

TEST(ProcessWatcher, TellsTheEndOfAProcessForEachWriterThatItIs) {
  Child child;
  Exits exits;
  const auto watcher = ProcessWatcher::Start(exits.Recorder()).value();
  ASSERT_TRUE(watcher->Watch(kOne, child.pid()).ok());
  ASSERT_TRUE(watcher->Watch(kOther, child.pid()).ok());
  child.Kill();
  EXPECT_THAT(exits.WaitFor(2), UnorderedElementsAre(kOne, kOther));
}

TEST(ProcessWatcher, TellsNoEndThatIsForgotten) {
  Child forgotten, last;
  Exits exits;
  const auto watcher = ProcessWatcher::Start(exits.Recorder()).value();
  ASSERT_TRUE(watcher->Watch(kOne, forgotten.pid()).ok());
  ASSERT_TRUE(watcher->Watch(kOther, last.pid()).ok());
  watcher->Forget(kOne);
  forgotten.Kill();
  last.Kill();
  EXPECT_THAT(exits.WaitFor(1), ElementsAre(kOther));
}

TEST(ProcessWatcher, AProcessThatCannotBeSeenIsAnError) {
  Exits exits;
  const auto watcher = ProcessWatcher::Start(exits.Recorder()).value();
  EXPECT_EQ(watcher->Watch(kOne, 0).code(), absl::StatusCode::kInvalidArgument);
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
