// Tests both ends of a lane that work at the same time, sleep, and wake each
// other.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <atomic>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "clients/lane/lane.h"
#include "tests/lane/lane_pair.h"

namespace pando {
namespace {

using Outcome = lane::Call::Outcome;
using Next = ServedLane::Next;

// Answers each request with the request itself, and sleeps in poll when it has
// nothing to do. If a wake-up is lost, it sleeps until the callers have given
// up.
class EchoingPandod {
 public:
  explicit EchoingPandod(ServedLane& served)
      : served_(served), thread_([this] { Run(); }) {}
  ~EchoingPandod() {
    stop_ = true;
    eventfd_write(served_.doorbell(), 1);
    thread_.join();
  }

 private:
  void Run() {
    ServedLane::Taken taken;
    while (!stop_) {
      while (served_.Take(taken) == Next::kCall) {
        AnswerWith(taken.request, taken.slot, served_);
      }
      served_.SetAwake(false);
      if (served_.HasCalls()) continue;
      pollfd doorbell = {served_.doorbell(), POLLIN, 0};
      poll(&doorbell, 1, /*ms=*/-1);
      uint64_t rings;
      (void)!read(served_.doorbell(), &rings, sizeof rings);
      served_.SetAwake(true);
    }
  }

  ServedLane& served_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

class WakingTest : public testing::TestWithParam<bool> {};

// With one caller, both ends sleep at each call. With many callers, they sleep
// at some calls.
TEST_P(WakingTest, LosesNoCallAndNoAnswer) {
  const int callers = GetParam() ? 8 : 1;
  const int calls = GetParam() ? 2'000 : 5'000;
  LanePair pair(1 << 20);
  std::vector<std::thread> threads;
  {
    EchoingPandod pandod(pair.served());
    for (int caller = 0; caller < callers; ++caller) {
      threads.emplace_back([&, caller] {
        std::mt19937 random(caller);
        for (int i = 0; i < calls; ++i) {
          const std::string text(random() % 4000, static_cast<char>(i));
          lane::Call call = Request(pair.lane(), text, text.size());
          call.Submit();
          ASSERT_EQ(call.Await(Soon()), Outcome::kAnswered) << i;
          ASSERT_EQ(TextOf(call.answer()), text) << i;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}
INSTANTIATE_TEST_SUITE_P(Callers, WakingTest, testing::Bool());

// pandod may still read the request of a call that was given up, or write its
// answer, while other calls ask for memory.
TEST(LaneThreadsTest, CallsThatAreGivenUpSpoilNoOthers) {
  LanePair pair;
  EchoingPandod pandod(pair.served());
  std::vector<std::thread> threads;
  for (int caller = 0; caller < 4; ++caller) {
    threads.emplace_back([&, caller] {
      std::mt19937 random(caller);
      for (int answered = 0, i = 0; answered < 500; ++i) {
        const std::string text(random() % 4000, static_cast<char>(i));
        std::optional<lane::Call> call = pair.lane().NewCall(
            lane::Method::kInsert, text.size(), text.size());
        if (!call) continue;  // calls that were given up take all the room
        std::memcpy(call->request().data(), text.data(), text.size());
        call->Submit();
        if (random() % 2 == 0) continue;
        ASSERT_EQ(call->Await(Soon()), Outcome::kAnswered) << i;
        ASSERT_EQ(TextOf(call->answer()), text) << i;
        ++answered;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(LaneThreadsTest, WhoWaitsForAnyCallIsWokenByEach) {
  LanePair pair;
  std::vector<lane::Call> calls;
  for (int i = 0; i < 20; ++i) calls.push_back(Request(pair.lane(), "x"));
  for (lane::Call& call : calls) call.Submit();
  std::atomic<int> answered = 0;
  std::thread waiter([&] {
    for (lane::Call& call : calls) call.WakeLane();
    while (true) {
      const uint32_t seen = pair.lane().answers();
      int done = 0;
      for (lane::Call& call : calls) done += call.Poll().has_value();
      answered = done;
      if (done == 20) return;
      pair.lane().AwaitAnswers(seen, std::chrono::seconds(20));
    }
  });
  ServedLane::Taken taken;
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(pair.served().Take(taken), Next::kCall);
    AnswerWith("y", taken.slot, pair.served());
    while (answered <= i) std::this_thread::yield();
  }
  waiter.join();
}

TEST(LaneThreadsTest, AClosedLaneWakesWhoSleeps) {
  for (const bool by_worker : {true, false}) {
    LanePair pair;
    std::atomic<int> ended = 0;
    std::vector<std::thread> sleepers;
    for (int i = 0; i < 4; ++i) {
      sleepers.emplace_back([&] {
        lane::Call call = Request(pair.lane(), "x");
        call.Submit();
        EXPECT_EQ(call.Await(Soon()), Outcome::kClosed);
        ++ended;
      });
    }
    ServedLane::Taken taken;
    for (int seen = 0; seen < 4;) {
      seen += pair.served().Take(taken) == Next::kCall;
      std::this_thread::yield();
    }
    by_worker ? pair.lane().Close() : pair.served().Close();
    for (std::thread& sleeper : sleepers) sleeper.join();
    EXPECT_EQ(ended, 4);
  }
}

}  // namespace
}  // namespace pando
