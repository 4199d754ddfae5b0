#include "os/crash_count.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>

#include "gtest/gtest.h"

namespace pando {
namespace {

// Calls `crash` in a child process that counts its crashes in `count`. Returns
// the signal that ended the child; 0 if none did.
template <typename F>
int SignalOf(uint32_t* count, F crash) {
  const pid_t child = fork();
  if (child == 0) {
    CountCrashesIn({&count, 1});
    crash();
    _exit(0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

class CrashCountTest : public testing::Test {
 protected:
  CrashCountTest()
      : count_(static_cast<uint32_t*>(
            mmap(nullptr, sizeof(uint32_t), PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  ~CrashCountTest() override { munmap(count_, sizeof(uint32_t)); }

  uint32_t* const count_;
};

TEST_F(CrashCountTest, AProcessThatAbortsIsCountedOnceAndDiesOfIt) {
  EXPECT_EQ(SignalOf(count_, [] { std::abort(); }), SIGABRT);
  EXPECT_EQ(*count_, 1u);
}

TEST_F(CrashCountTest, ASignalThatIsSentIsCountedAndEndsTheProcess) {
  EXPECT_EQ(SignalOf(count_, [] { kill(getpid(), SIGTRAP); }), SIGTRAP);
  EXPECT_EQ(*count_, 1u);
}

TEST_F(CrashCountTest, AKillAndAnEndInOrderAreNoCrashes) {
  EXPECT_EQ(SignalOf(count_, [] { kill(getpid(), SIGKILL); }), SIGKILL);
  EXPECT_EQ(SignalOf(count_, [] {}), 0);
  EXPECT_EQ(*count_, 0u);
}

TEST_F(CrashCountTest, NothingIsCountedAnyMoreOnceItIsTurnedOff) {
  EXPECT_EQ(SignalOf(count_,
                     [] {
                       CountCrashesIn({});
                       std::abort();
                     }),
            SIGABRT);
  EXPECT_EQ(*count_, 0u);
}

}  // namespace
}  // namespace pando
