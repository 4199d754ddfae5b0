#include "base/visible_text.h"

#include "gtest/gtest.h"

namespace pando {
namespace {

TEST(VisibleText, WhatCanBeSeenStaysAsItIs) {
  for (const char* text : {"", "model", "a \"b\" \\n", "caf\u00e9",
                           "\u65e5\u672c", "\U0001f332", "\u0e01\u0e33"}) {
    EXPECT_EQ(VisibleText(text), text);
  }
}

TEST(VisibleText, ControlCharactersAreEscaped) {
  EXPECT_EQ(VisibleText("\x1b[31m\n\x7f"), R"(\u001b[31m\u000a\u007f)");
  EXPECT_EQ(VisibleText(std::string("a\0b", 3)), R"(a\u0000b)");
  // C1 controls are single characters that command a terminal as escape
  // sequences do.
  EXPECT_EQ(VisibleText("\u0080\u009b31m\u009f\u00a0"),
            "\\u0080\\u009b31m\\u009f\u00a0");
}

TEST(VisibleText, WhatTurnsTheDirectionOfWritingIsEscaped) {
  EXPECT_EQ(VisibleText("a\u202eb\u202ac\u2066d\u2069e\u200ff\u061cg"),
            R"(a\u202eb\u202ac\u2066d\u2069e\u200ff\u061cg)");
  EXPECT_EQ(VisibleText("\u2028\u2029\ufeff"), R"(\u2028\u2029\ufeff)");
}

TEST(VisibleText, BytesThatAreNoUtf8AreEscaped) {
  EXPECT_EQ(VisibleText("a\x80\xc3"), R"(a\x80\xc3)");
  EXPECT_EQ(VisibleText("\xc0\x9b"), R"(\xc0\x9b)");          // overlong form
  EXPECT_EQ(VisibleText("\xed\xa0\x80"), R"(\xed\xa0\x80)");  // a surrogate
  EXPECT_EQ(VisibleText("\xf4\x90\x80\x80"), R"(\xf4\x90\x80\x80)");
  EXPECT_EQ(VisibleText("\xff\xe2\x80"), R"(\xff\xe2\x80)");
}

TEST(VisibleText, WhatIsToBeKeptStays) {
  EXPECT_EQ(VisibleText("a\nb\tc", "\n"), "a\nb\\u0009c");
}

TEST(VisibleText, ACharacterIsAsManyBytesAsItsFirstByteSays) {
  EXPECT_EQ(FirstCharacterSize("a"), 1u);
  EXPECT_EQ(FirstCharacterSize("\u00e9b"), 2u);
  EXPECT_EQ(FirstCharacterSize("\u65e5"), 3u);
  EXPECT_EQ(FirstCharacterSize("\U0001f332"), 4u);
  EXPECT_EQ(FirstCharacterSize("\xe6\x97"), 1u);
}

}  // namespace
}  // namespace pando
