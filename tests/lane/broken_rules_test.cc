// Tests that pandod closes a lane when the worker breaks a rule in its memory.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <thread>
#include <vector>

#include "lane/futex.h"
#include "lane/layout.h"
#include "tests/lane/lane_pair.h"

namespace pando {
namespace {

using Next = ServedLane::Next;

class BrokenRulesTest : public testing::Test {
 protected:
  BrokenRulesTest() : base_(pair_.Scribble()) {}

  lane::Header& header() { return lane::HeaderAt(base_); }
  lane::Slot& slot() { return lane::SlotAt(base_, 0); }
  Next Take() { return pair_.served().Take(taken_); }
  // Submits a call that keeps all rules.
  void Submit() {
    lane::Call call = Request(pair_.lane(), "x");
    call.Submit();
  }

  LanePair pair_;
  std::byte* const base_;
  ServedLane::Taken taken_;
};

TEST_F(BrokenRulesTest, MoreCallsThanThereAreSlots) {
  header().submitted = lane::kSlots + 1;
  EXPECT_EQ(Take(), Next::kBroken);
}

TEST_F(BrokenRulesTest, CallsThatAreTakenBack) {
  Submit();
  ASSERT_EQ(Take(), Next::kCall);
  header().submitted = 0;
  EXPECT_EQ(Take(), Next::kBroken);
}

TEST_F(BrokenRulesTest, ASlotThatIsNotThere) {
  Submit();
  header().ring[0] = lane::kSlots;
  EXPECT_EQ(Take(), Next::kBroken);
}

TEST_F(BrokenRulesTest, ASlotTwice) {
  Submit();
  ASSERT_EQ(Take(), Next::kCall);
  header().ring[1] = 0;
  header().submitted = 2;
  EXPECT_EQ(Take(), Next::kBroken);
}

TEST_F(BrokenRulesTest, ARequestOutsideTheArena) {
  Submit();
  slot().request_offset = kArenaBytes;
  slot().request_bytes = 1;
  EXPECT_EQ(Take(), Next::kBroken);
}

TEST_F(BrokenRulesTest, ARequestThatEndsOutsideTheArena) {
  Submit();
  slot().request_offset = 64;
  slot().request_bytes = 0xffffffff;
  EXPECT_EQ(Take(), Next::kBroken);
}

TEST_F(BrokenRulesTest, AnAnswerOutsideTheArena) {
  Submit();
  slot().answer_offset = 0xffffffc0;
  slot().answer_capacity = 128;
  EXPECT_EQ(Take(), Next::kBroken);
}

TEST_F(BrokenRulesTest, WhatIsChangedAfterACallWasTakenIsNotLookedAt) {
  Submit();
  ASSERT_EQ(Take(), Next::kCall);
  const uint32_t offset = slot().answer_offset;
  slot().answer_offset = 0xffffffff;
  slot().answer_capacity = 0xffffffff;
  AnswerWith("yes", taken_.slot, pair_.served());
  EXPECT_EQ(TextOf({lane::ArenaAt(base_) + offset, 3}), "yes");
}

// Makes all threads that sleep on `from` sleep on `to` instead. Returns how
// many threads those are. The kernel may wake a thread for no reason. Such a
// thread sleeps again on the word that it slept on first.
long MoveSleepers(const lane::SharedWord& from, const lane::SharedWord& to) {
  return syscall(SYS_futex, &from, FUTEX_REQUEUE, 0, long{INT_MAX}, &to, 0);
}

long CountSleepers(const lane::SharedWord& word) {
  return MoveSleepers(word, word);
}

TEST_F(BrokenRulesTest, AnAnswerWakesOneOfManyWhoSleepOnItsSlot) {
  constexpr long kThreads = 8;
  lane::Call call = Request(pair_.lane(), "x");
  call.Submit();
  ASSERT_EQ(Take(), Next::kCall);
  lane::SharedWord elsewhere = 0;
  std::atomic<long> awake = 0;
  std::vector<std::thread> threads;
  for (long i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      lane::FutexWait(elsewhere, 0, std::chrono::minutes(5));
      ++awake;
    });
  }
  while (CountSleepers(slot().state) != kThreads) {
    MoveSleepers(elsewhere, slot().state);
    std::this_thread::yield();
  }
  slot().sleeper = static_cast<uint32_t>(lane::Sleeper::kOnSlot);
  AnswerWith("yes", taken_.slot, pair_.served());
  long asleep = 0;
  while (asleep + awake != kThreads) {
    std::this_thread::yield();
    MoveSleepers(slot().state, elsewhere);
    asleep = CountSleepers(elsewhere);
  }
  EXPECT_EQ(asleep, kThreads - 1);
  elsewhere = 1;
  lane::FutexWake(elsewhere, kThreads);
  for (std::thread& thread : threads) thread.join();
}

TEST_F(BrokenRulesTest, TheSizeOfTheMemoryCannotBeChanged) {
  const UniqueFd memory = pair_.served().ShareMemory().value();
  EXPECT_EQ(ftruncate(memory.get(), 4096), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(ftruncate(memory.get(), 1 << 30), -1);
  EXPECT_EQ(fcntl(memory.get(), F_ADD_SEALS, F_SEAL_WRITE), -1);
}

TEST_F(BrokenRulesTest, AHoleInTheMemoryReadsAsZeros) {
  const UniqueFd memory = pair_.served().ShareMemory().value();
  Submit();
  ASSERT_EQ(fallocate(memory.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                      0, lane::kArenaOffset + kArenaBytes),
            0);
  EXPECT_EQ(Take(), Next::kNothing);
}

}  // namespace
}  // namespace pando
