// Tests the texts that pandod prints when it is not to serve.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "service/options/option_table.h"
#include "tests/service/options_fixture.h"

namespace pando {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

TEST_F(OptionsTest, CheckConfigSaysHowLargeThePoolIs) {
  EXPECT_EQ(Parse({"--check-config", "--pool-shards=2"}).value().print,
            "config ok: 4096 pages of 16 tokens and 2097152 bytes, 8589934592 "
            "bytes (8.0 GiB) on each of 2 shard(s)\n"
            "eviction policy lru, no pages kept free\n");
}

TEST_F(OptionsTest, ASmallPoolIsShownInAUnitInWhichItIsNotNothing) {
  const auto size = [](const char* pages, const char* heads) {
    return Parse({"--check-config", "--layers=1", heads, pages}).value().print;
  };
  // A page has 64 KiB with 8 heads, and 8 KiB with 1 head.
  EXPECT_THAT(size("--pool-pages=1024", "--heads=8"), HasSubstr("(0.1 GiB)"));
  EXPECT_THAT(size("--pool-pages=100", "--heads=8"), HasSubstr("(6.2 MiB)"));
  EXPECT_THAT(size("--pool-pages=2", "--heads=1"), HasSubstr("(16.0 KiB)"));
}

TEST_F(OptionsTest, CheckConfigSaysWhatTheCacheWillDo) {
  const std::string print =
      Parse({"--config", WriteYaml(kTwoQuotas), "--check-config",
             "--eviction-policy=slru", "--low-free-pages=64",
             "--high-free-pages=128"})
          .value()
          .print;
  EXPECT_THAT(
      print,
      EndsWith(
          "eviction policy slru, with less than 64 pages free until 128 are\n"
          "quota class a, extra_key tenant-a/*: floor of 10 pages, cap of 20 "
          "pages\n"
          "quota class b, extra_key b: floor of 0 pages, no cap\n"));
}

// Returns the text of each option and of each quota class.
std::vector<std::string> TextsOf(const Options& options) {
  std::vector<std::string> texts;
  for (const OptionSpec& spec : OptionTable()) {
    texts.push_back(spec.name + "=" + spec.get(options));
  }
  for (const QuotaClass& quota : options.quotas) {
    texts.push_back(absl::StrCat(
        quota.name, " ", quota.pattern, " ", quota.floor_pages, " ",
        quota.cap_pages.value_or(0), " ", quota.cap_pages.has_value()));
  }
  return texts;
}

TEST_F(OptionsTest, ThePrintedConfigIsReadBackAsTheSameOptions) {
  std::vector<std::string> flags;
  for (const auto& [name, value] : OtherValues()) {
    flags.push_back("--" + name + "=" + value);
  }
  const std::vector<std::vector<std::string>> given = {
      {},
      flags,
      {"--pool-bytes=2GiB", "--http=", "--model=~",
       "--verify-pages=0.123456789"},
      {"--pool-memory=cuda", "--pool-fraction=0.1", "--model=a: b # c"},
      {"--session-grace=1.000000001s", "--model= \"'\n\t\\ "},
      {"--page-bytes=64KiB", "--page-format=a, b"},
      {"--config", WriteYaml(kTwoQuotas)}};
  for (const std::vector<std::string>& arguments : given) {
    const Options options = Parsed(arguments);
    std::vector<std::string> printing = arguments;
    printing.push_back("--print-config");
    const std::string text = Parse(printing).value().print;
    EXPECT_EQ(TextsOf(Parsed({"--config", WriteYaml(text)})), TextsOf(options))
        << text;
  }
}

TEST_F(OptionsTest, ThePrintedConfigSaysWhereEachValueIsFrom) {
  const std::string yaml = WriteYaml(
      "layers: 10\nheads: 10\npool: {pages: 77}\n" + std::string(kTwoQuotas));
  const std::string print =
      Parse({"--config", yaml, "--print-config", "--pool-pages=99"},
            {"PANDO_POOL_PAGES=88", "PANDO_LAYERS=20"})
          .value()
          .print;
  EXPECT_THAT(print, HasSubstr("\npool-pages: 99  # --pool-pages\n"));
  EXPECT_THAT(print, HasSubstr("\nlayers: 20  # PANDO_LAYERS\n"));
  EXPECT_THAT(print, HasSubstr("\nheads: 10  # " + yaml + "\n"));
  EXPECT_THAT(print, HasSubstr("\nhead-size: 128  # default\n"));
  EXPECT_THAT(print, HasSubstr("\nquotas:  # " + yaml + "\n"));
  EXPECT_THAT(print, Not(HasSubstr("pool-bytes")));
}

TEST_F(OptionsTest, ABadConfigIsNotPrinted) {
  EXPECT_EQ(Error({"--print-config", "--low-free-pages=5"}),
            "low-free-pages is 5 and high-free-pages is 0; give both, or "
            "neither");
}

TEST_F(OptionsTest, HelpShowsEveryOptionWithItsDefault) {
  const std::string help = Parse({"--help"}).value().print;
  for (const OptionSpec& spec : OptionTable()) {
    EXPECT_THAT(help, HasSubstr("--" + spec.name));
  }
  EXPECT_THAT(help, HasSubstr("127.0.0.1:9464"));
}

TEST_F(OptionsTest, VersionNamesTheProgram) {
  EXPECT_THAT(Parse({"--version"}).value().print, StartsWith("pandod "));
}

TEST_F(OptionsTest, WithoutThoseFlagsThereIsNothingToPrint) {
  EXPECT_THAT(Parse({}).value().print, IsEmpty());
}

}  // namespace
}  // namespace pando
