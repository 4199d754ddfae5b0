// Tests the gauge page, which one process writes and others read.
#include "clients/lane/gauges.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <thread>

#include "service/lane/gauge_board.h"

namespace pando {
namespace {

std::shared_ptr<const lane::MappedGauges> Reader(const GaugeBoard& board) {
  std::string error;
  return lane::MappedGauges::Map(board.Share().value(), error);
}

TEST(GaugesTest, AreReadAsTheyWereShown) {
  const auto board = GaugeBoard::Create().value();
  const auto reader = Reader(*board);
  ASSERT_NE(reader, nullptr);
  lane::Gauges gauges = {.epoch = uint64_t{1} << 63,
                         .free = 1,
                         .evictable = 2,
                         .protected_pages = 3,
                         .reserved = 4,
                         .quarantined = 5,
                         .capacity = 16,
                         .draining = 1};
  std::string_view("priority").copy(gauges.policy.data(), 20);
  board->Show(gauges);
  EXPECT_EQ(reader->Read(), gauges);
  EXPECT_EQ(lane::PolicyOf(*reader->Read()), "priority");
}

TEST(GaugesTest, AreAlwaysOfOneMoment) {
  const auto board = GaugeBoard::Create().value();
  const auto reader = Reader(*board);
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    for (uint32_t i = 0; !stop; ++i) {
      board->Show({.epoch = i, .free = i, .evictable = i, .capacity = i});
    }
  });
  uint64_t last = 0;
  for (int i = 0; i < 200'000; ++i) {
    const std::optional<lane::Gauges> read = reader->Read();
    if (!read.has_value()) continue;  // the writer sleeps in mid-write
    ASSERT_EQ(read->free, read->epoch);
    ASSERT_EQ(read->evictable, read->epoch);
    ASSERT_EQ(read->capacity, read->epoch);
    ASSERT_GE(read->epoch, last);
    last = read->epoch;
  }
  stop = true;
  writer.join();
  EXPECT_GT(last, 0);
}

TEST(GaugesTest, NobodyButTheirOwnerCanWriteThem) {
  const auto board = GaugeBoard::Create().value();
  const UniqueFd memory = board->Share().value();
  EXPECT_EQ(mmap(nullptr, lane::kGaugePageBytes, PROT_READ | PROT_WRITE,
                 MAP_SHARED, memory.get(), 0),
            MAP_FAILED);
  void* const read_only = mmap(nullptr, lane::kGaugePageBytes, PROT_READ,
                               MAP_SHARED, memory.get(), 0);
  ASSERT_NE(read_only, MAP_FAILED);
  EXPECT_EQ(mprotect(read_only, lane::kGaugePageBytes, PROT_READ | PROT_WRITE),
            -1);
  EXPECT_EQ(pwrite(memory.get(), "x", 1, 0), -1);
  board->Show({.epoch = 3});
  EXPECT_EQ(Reader(*board)->Read()->epoch, 3);
  munmap(read_only, lane::kGaugePageBytes);
}

TEST(GaugesTest, AWriterThatWasKilledHalfDoneHangsNoReader) {
  lane::GaugePage page = {};
  page.sequence = 7;
  EXPECT_EQ(lane::ReadGauges(page), std::nullopt);
}

}  // namespace
}  // namespace pando
