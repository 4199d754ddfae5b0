#include "events/routers/frame_history.h"

#include <memory>
#include <string>

#include "gtest/gtest.h"

namespace pando {
namespace {

Frame FrameOf(uint64_t sequence, size_t bytes = 1) {
  return {sequence, std::make_shared<const std::string>(bytes, 'x')};
}

TEST(FrameHistoryTest, HoldsNothingAtFirst) {
  const FrameHistory history({.frames = 3, .bytes = 100});
  EXPECT_FALSE(history.HoldsAllFrom(0));
  EXPECT_FALSE(history.Find(0).has_value());
}

TEST(FrameHistoryTest, HoldsAllFromEachFrameAndFromTheNextOne) {
  FrameHistory history({.frames = 3, .bytes = 100});
  for (uint64_t n = 50; n < 52; ++n) history.Append(FrameOf(n));
  EXPECT_FALSE(history.HoldsAllFrom(49));
  EXPECT_TRUE(history.HoldsAllFrom(50));
  EXPECT_TRUE(history.HoldsAllFrom(51));
  EXPECT_TRUE(history.HoldsAllFrom(52));
  EXPECT_FALSE(history.HoldsAllFrom(53));
  EXPECT_EQ(history.Find(51)->sequence, 51);
  EXPECT_FALSE(history.Find(52).has_value());
}

TEST(FrameHistoryTest, ForgetsTheOldestFramesAtEitherLimit) {
  FrameHistory history({.frames = 3, .bytes = 100});
  for (uint64_t n = 50; n < 55; ++n) history.Append(FrameOf(n));
  EXPECT_FALSE(history.HoldsAllFrom(51));
  EXPECT_TRUE(history.HoldsAllFrom(52));
  history.Append(FrameOf(55, 99));
  EXPECT_FALSE(history.HoldsAllFrom(53));
  EXPECT_TRUE(history.HoldsAllFrom(54));
}

}  // namespace
}  // namespace pando
