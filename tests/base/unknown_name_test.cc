#include "base/unknown_name.h"

#include "gtest/gtest.h"

namespace pando {
namespace {

TEST(UnknownName, ANameThatIsNearlyAnotherOneSuggestsIt) {
  EXPECT_EQ(UnknownName("verb", "stauts", {"stat", "status", "top"}),
            "unknown verb 'stauts'; did you mean 'status'?");
  EXPECT_EQ(UnknownName("flag", "--pol", {"--pool", "--http"}),
            "unknown flag '--pol'; did you mean '--pool'?");
}

TEST(UnknownName, ANameThatIsLikeNoneSuggestsNone) {
  EXPECT_EQ(UnknownName("verb", "dance", {"status", "drain", "top"}),
            "unknown verb 'dance'; see --help");
  EXPECT_EQ(UnknownName("verb", "", {"a"}), "unknown verb ''; see --help");
}

// If the common beginning counted, each short name would be similar to all
// others.
TEST(UnknownName, WhatAllNamesBeginWithDoesNotMakeThemAlike) {
  EXPECT_EQ(UnknownName("environment variable", "PANDO_FOO",
                        {"PANDO_TCP", "PANDO_HTTP", "PANDO_SOCKET"}),
            "unknown environment variable 'PANDO_FOO'; see --help");
}

}  // namespace
}  // namespace pando
