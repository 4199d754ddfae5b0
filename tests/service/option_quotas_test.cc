// Tests quotas, which can be set only in the file.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/service/options_fixture.h"

namespace pando {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(OptionsTest, QuotasAreAListInTheFile) {
  const std::vector<QuotaClass> quotas =
      Parsed({"--config", WriteYaml(kTwoQuotas)}).quotas;
  ASSERT_EQ(quotas.size(), 2u);
  EXPECT_EQ(quotas[0].name, "a");
  EXPECT_EQ(quotas[0].pattern, "tenant-a/*");
  EXPECT_EQ(quotas[0].floor_pages, 10u);
  EXPECT_EQ(quotas[0].cap_pages, 20u);
  EXPECT_EQ(quotas[1].name, "b");
  EXPECT_EQ(quotas[1].pattern, "b");
  EXPECT_EQ(quotas[1].floor_pages, 0u);
  EXPECT_EQ(quotas[1].cap_pages, std::nullopt);
}

TEST_F(OptionsTest, AClassMayRetainForAtMostAsLongAsTheFileSays) {
  const std::string text = "quotas:\n  - {class: a, extra_key: a";
  EXPECT_EQ(Parsed({"--config", WriteYaml(text + "}\n")})
                .quotas[0]
                .max_retention_seconds,
            0u);
  EXPECT_EQ(
      Parsed({"--config", WriteYaml(text + ", max_retention_seconds: 60}\n")})
          .quotas[0]
          .max_retention_seconds,
      60u);
  EXPECT_THAT(YamlError(text + ", max_retention_seconds: 65536}\n"),
              HasSubstr("quotas[0]: max_retention_seconds is '65536'; must be "
                        "a whole number from 0 to 65535"));
}

TEST_F(OptionsTest, AnEmptyListOfQuotasIsNone) {
  EXPECT_THAT(Parsed({"--config", WriteYaml("quotas:\n")}).quotas, IsEmpty());
  EXPECT_THAT(Parsed({"--config", WriteYaml("quotas: []\n")}).quotas,
              IsEmpty());
}

TEST_F(OptionsTest, BadQuotasAreErrorsThatNameTheEntry) {
  const std::string first = "quotas:\n  - {class: a, extra_key: a}\n";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"quotas: 7",
       "line 1: quotas must be a list of maps of class, "
       "extra_key, floor_pages, cap_pages, max_retention_seconds"},
      {"quotas: {class: a}", "line 1: quotas must be a list of maps"},
      {"quotas: []\nquotas: []", "line 2: quotas is given twice"},
      {"quota: []", "unknown key 'quota'; did you mean 'quotas'?"},
      {first + "  - 7",
       "line 3: quotas[1] must be a map of class, extra_key, floor_pages, "
       "cap_pages, max_retention_seconds"},
      {first + "  - {class: b, extra_key: b, floor_page: 1}",
       "line 3: unknown key of quotas[1] 'floor_page'; did you mean "
       "'floor_pages'?"},
      {first + "  - {class: b, class: c, extra_key: b}",
       "line 3: quotas[1]: class is given twice"},
      {first + "  - {class: b}", "line 3: quotas[1]: extra_key is missing"},
      {first + "  - {extra_key: b}", "line 3: quotas[1]: class is missing"},
      {first + "  - {class: '', extra_key: b}",
       "line 3: quotas[1]: class must be a text that is not empty"},
      {first + "  - {class: b, extra_key: [b]}",
       "line 3: quotas[1]: extra_key must be a text that is not empty"},
      {first + "  - {class: a, extra_key: b}",
       "line 3: quotas[1]: class is 'a', as of another one"},
      {first + "  - {class: b, extra_key: b, cap_pages: -1}",
       "line 3: quotas[1]: cap_pages is '-1'; must be a whole number from 0 to "
       "4294967295"},
      {first + "  - {class: b, extra_key: b, floor_pages: many}",
       "line 3: quotas[1]: floor_pages is 'many'; must be a whole number"},
      {first + "  - {class: b, extra_key: b, floor_pages: 3, cap_pages: 2}",
       "line 3: quotas[1]: floor_pages is 3; must be at most cap_pages, which "
       "is 2"}};
  for (const auto& [text, message] : cases) {
    EXPECT_THAT(YamlError(text), HasSubstr("pando.yaml: ")) << text;
    EXPECT_THAT(YamlError(text), HasSubstr(message)) << text;
  }
}

TEST_F(OptionsTest, TheFloorsOfAllQuotasFitIntoThePool) {
  const std::string text =
      "pool-pages: 31\n"
      "quotas:\n"
      "  - {class: a, extra_key: a, floor_pages: 20}\n"
      "  - {class: b, extra_key: b, floor_pages: ";
  EXPECT_EQ(Parsed({"--config", WriteYaml(text + "10}\n")}).quotas.size(), 2u);
  EXPECT_EQ(YamlError(text + "11}\n"),
            "the floor_pages of all quotas are 31 together; must be at most "
            "30, the pages of the pool but for the padding page");
}

}  // namespace
}  // namespace pando
