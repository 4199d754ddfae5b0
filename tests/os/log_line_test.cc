#include "os/logging/log_line.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "gtest/gtest.h"

namespace pando {
namespace {

const absl::Time kTime = absl::FromUnixMillis(1'700'000'000'123);

TEST(LogLineTest, TextIsReadByPeople) {
  const LogField fields[] = {
      {"session", 3}, {"client_name", "worker 0"}, {"peer", "unix:"}};
  EXPECT_EQ(TextLine({kTime, "info", "session opened", fields}),
            "2023-11-14T22:13:20.123Z info session opened session=3 "
            "client_name=\"worker 0\" peer=unix:");
}

TEST(LogLineTest, JsonIsAnObjectWithTheFieldsAfterTheWords) {
  const LogField fields[] = {{"session", 3}, {"client_name", "a \"b\""}};
  EXPECT_EQ(JsonLine({kTime, "info", "session opened", fields}),
            R"({"ts":"2023-11-14T22:13:20.123Z","level":"info",)"
            R"("msg":"session opened","session":3,"client_name":"a \"b\""})");
}

TEST(LogLineTest, WhateverAFieldHoldsThereIsOneLineOfValidText) {
  for (const std::string& text :
       {std::string("\n\r\t\0\x1b[31m", 9), std::string("\xff\xc3\x28"),
        std::string("a=b c=d"), std::string(), std::string("\\\"")}) {
    const LogField fields[] = {{"name", text}};
    const LogEvent event = {kTime, "info", "words", fields};
    for (const char c : TextLine(event)) {
      EXPECT_TRUE(c >= ' ' && c <= '~') << TextLine(event);
    }
    EXPECT_EQ(JsonLine(event).find('\n'), std::string::npos);
    EXPECT_TRUE(nlohmann::json::accept(JsonLine(event))) << JsonLine(event);
  }
}

TEST(LogLineTest, NumbersAreNumbers) {
  const LogField fields[] = {{"min", std::numeric_limits<int64_t>::min()},
                             {"max", std::numeric_limits<uint64_t>::max()}};
  const auto line =
      nlohmann::json::parse(JsonLine({kTime, "info", "words", fields}));
  EXPECT_EQ(line["min"], std::numeric_limits<int64_t>::min());
  EXPECT_EQ(line["max"], std::numeric_limits<uint64_t>::max());
}

}  // namespace
}  // namespace pando
