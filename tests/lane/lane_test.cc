// Tests that a lane carries calls and answers, from both of its ends.
#include "clients/lane/lane.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/lane/lane_pair.h"

namespace pando {
namespace {

using Outcome = lane::Call::Outcome;
using Next = ServedLane::Next;

TEST(LaneTest, CarriesARequestThereAndAnAnswerBack) {
  LanePair pair;
  lane::Call call =
      Request(pair.lane(), "a request", 256, lane::Method::kUnlock);
  call.Submit();
  ServedLane::Taken taken;
  ASSERT_EQ(pair.served().Take(taken), Next::kCall);
  EXPECT_EQ(taken.request, "a request");
  EXPECT_EQ(taken.method, static_cast<uint32_t>(lane::Method::kUnlock));
  EXPECT_EQ(pair.served().Take(taken), Next::kNothing);
  AnswerWith("its answer", taken.slot, pair.served(), 7);
  ASSERT_EQ(call.Await(Soon()), Outcome::kAnswered);
  EXPECT_EQ(TextOf(call.answer()), "its answer");
  EXPECT_EQ(call.code(), 7);
}

TEST(LaneTest, CallsAreTakenInTheOrderOfTheirSubmissionAndAnsweredInAny) {
  LanePair pair;
  std::vector<lane::Call> calls;
  std::vector<lane::Call*> batch;
  for (const char* text : {"one", "two", "three"}) {
    calls.push_back(Request(pair.lane(), text));
  }
  for (lane::Call& call : calls) batch.push_back(&call);
  std::swap(batch[0], batch[2]);
  pair.lane().Submit(batch);
  std::vector<ServedLane::Taken> taken(3);
  for (ServedLane::Taken& each : taken) {
    ASSERT_EQ(pair.served().Take(each), Next::kCall);
  }
  EXPECT_EQ(taken[0].request, "three");
  EXPECT_EQ(taken[1].request, "two");
  EXPECT_EQ(taken[2].request, "one");
  AnswerWith("second", taken[1].slot, pair.served());
  EXPECT_EQ(calls[1].Await(Soon()), Outcome::kAnswered);
  EXPECT_EQ(calls[0].Poll(), std::nullopt);
  AnswerWith("first", taken[2].slot, pair.served());
  EXPECT_EQ(calls[0].Await(Soon()), Outcome::kAnswered);
  EXPECT_EQ(TextOf(calls[1].answer()), "second");
}

TEST(LaneTest, ADoorbellRingsOnceForManyCallsAndNotWhilePandodIsAwake) {
  LanePair pair;
  const auto rings = [&] {
    uint64_t count = 0;
    return read(pair.served().doorbell(), &count, sizeof count) < 0 ? 0 : count;
  };
  std::vector<lane::Call> calls;
  std::vector<lane::Call*> batch;
  for (int i = 0; i < 5; ++i) calls.push_back(Request(pair.lane(), "x"));
  for (lane::Call& call : calls) batch.push_back(&call);
  pair.lane().Submit(batch);
  EXPECT_EQ(rings(), 1);
  pair.served().SetAwake(true);
  lane::Call unheard = Request(pair.lane(), "x");
  unheard.Submit();
  EXPECT_EQ(rings(), 0);
  pair.served().SetAwake(false);
  lane::Call heard = Request(pair.lane(), "x");
  heard.Submit();
  EXPECT_EQ(rings(), 1);
}

TEST(LaneTest, AnAnswerThatNeedsMoreRoomSaysHowMuch) {
  LanePair pair;
  lane::Call call = Request(pair.lane(), "x", /*answer_bytes=*/100);
  call.Submit();
  ServedLane::Taken taken;
  ASSERT_EQ(pair.served().Take(taken), Next::kCall);
  AnswerWith(std::string(101, 'y'), taken.slot, pair.served());
  EXPECT_EQ(call.Await(Soon()), Outcome::kTooLarge);
  EXPECT_EQ(call.answer().size(), 101);
}

TEST(LaneTest, HasNoRoomForACallWhenItsSlotsOrItsMemoryAreInUse) {
  LanePair few(kArenaBytes, /*slots=*/2);
  std::optional<lane::Call> first =
      few.lane().NewCall(lane::Method::kInsert, 1, 1);
  std::optional<lane::Call> second =
      few.lane().NewCall(lane::Method::kInsert, 1, 1);
  EXPECT_TRUE(first && second);
  EXPECT_FALSE(few.lane().NewCall(lane::Method::kInsert, 1, 1));
  first.reset();
  EXPECT_TRUE(few.lane().NewCall(lane::Method::kInsert, 1, 1));

  LanePair small;
  EXPECT_FALSE(small.lane().NewCall(lane::Method::kInsert, kArenaBytes, 1));
  std::optional<lane::Call> whole =
      small.lane().NewCall(lane::Method::kInsert, kArenaBytes, 0);
  EXPECT_TRUE(whole);
  EXPECT_FALSE(small.lane().NewCall(lane::Method::kInsert, 1, 1));
}

TEST(LaneTest, MemoryOfACallThatIsOverIsUsedAgain) {
  LanePair pair;
  // The calls need more than the ring and the arena hold, so that both wrap
  // around.
  for (uint32_t i = 0; i < 10 * lane::kSlots; ++i) {
    const std::string text = std::string(1000, 'a') + std::to_string(i);
    lane::Call call = Request(pair.lane(), text, 2000);
    call.Submit();
    ServedLane::Taken taken;
    ASSERT_EQ(pair.served().Take(taken), Next::kCall);
    ASSERT_EQ(taken.request, text);
    AnswerWith(text, taken.slot, pair.served());
    ASSERT_EQ(call.Await(Soon()), Outcome::kAnswered);
    ASSERT_EQ(TextOf(call.answer()), text);
  }
}

TEST(LaneTest, MemoryOfACallThatWasGivenUpIsUsedAgainOnceItIsAnswered) {
  LanePair pair;
  ServedLane::Taken taken;
  {
    lane::Call late = Request(pair.lane(), "late", kArenaBytes / 2);
    late.Submit();
    EXPECT_EQ(late.Await(lane::Lane::Clock::now()), Outcome::kTimedOut);
  }
  EXPECT_FALSE(
      pair.lane().NewCall(lane::Method::kInsert, kArenaBytes - 1024, 0));
  ASSERT_EQ(pair.served().Take(taken), Next::kCall);
  AnswerWith("too late", taken.slot, pair.served());
  EXPECT_TRUE(
      pair.lane().NewCall(lane::Method::kInsert, kArenaBytes - 1024, 0));
}

TEST(LaneTest, EndsCallsThatAreNotAnsweredWhenEitherSideClosesIt) {
  for (const bool by_worker : {true, false}) {
    LanePair pair;
    lane::Call answered = Request(pair.lane(), "x");
    lane::Call taken_only = Request(pair.lane(), "y");
    lane::Call unseen = Request(pair.lane(), "z");
    answered.Submit();
    taken_only.Submit();
    unseen.Submit();
    ServedLane::Taken taken;
    ASSERT_EQ(pair.served().Take(taken), Next::kCall);
    AnswerWith("there", taken.slot, pair.served());
    ASSERT_EQ(pair.served().Take(taken), Next::kCall);
    by_worker ? pair.lane().Close() : pair.served().Close();
    EXPECT_EQ(answered.Await(Soon()), Outcome::kAnswered);
    EXPECT_EQ(taken_only.Await(Soon()), Outcome::kClosed);
    EXPECT_EQ(unseen.Await(Soon()), Outcome::kClosed);
    EXPECT_TRUE(pair.lane().is_closed());
    EXPECT_FALSE(pair.lane().NewCall(lane::Method::kInsert, 1, 1));
  }
}

TEST(LaneTest, WhoReadsAnAnswerTooLateLearnsThatItIsGone) {
  LanePair pair;
  lane::Call call = Request(pair.lane(), "x");
  call.Submit();
  ServedLane::Taken taken;
  ASSERT_EQ(pair.served().Take(taken), Next::kCall);
  AnswerWith("there", taken.slot, pair.served());
  pair.served().Close();
  ASSERT_EQ(call.Await(Soon()), Outcome::kAnswered);
  EXPECT_EQ(TextOf(call.answer()), "there");
  EXPECT_TRUE(call.HasIntactAnswer());
  pair.served().DiscardArena();
  EXPECT_EQ(TextOf(call.answer()), std::string(5, 0));
  EXPECT_FALSE(call.HasIntactAnswer());
}

TEST(LaneTest, ACallThatIsSubmittedAsTheLaneClosesEnds) {
  LanePair pair;
  lane::Call call = Request(pair.lane(), "x");
  pair.served().Close();
  call.Submit();
  EXPECT_EQ(call.Await(Soon()), Outcome::kClosed);
}

TEST(LaneTest, IsRefusedWhenItIsOfAnotherVersionOrNoLane) {
  LanePair pair;
  lane::HeaderAt(pair.Scribble()).version = 2;
  std::string error;
  EXPECT_EQ(lane::Lane::Map(pair.served().ShareMemory().value(),
                            pair.served().ShareDoorbell().value(), error),
            nullptr);
  EXPECT_THAT(error, testing::HasSubstr("version 2"));
  EXPECT_EQ(lane::Lane::Map(pair.served().ShareDoorbell().value(),
                            pair.served().ShareDoorbell().value(), error),
            nullptr);
  EXPECT_THAT(error, testing::HasSubstr("no memory"));
}

}  // namespace
}  // namespace pando
