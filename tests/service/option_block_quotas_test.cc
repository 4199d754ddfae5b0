// Tests quotas of blocks, which can be set only in the file.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "service/options/option_changes.h"
#include "tests/service/options_fixture.h"

namespace pando {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kTwo[] =
    "memory: 64MiB\n"
    "block_quotas:\n"
    "  - {name: chat, label: '* chat*', floor: 16MiB, cap: 32MiB}\n"
    "  - {name: code, label: code}\n";

TEST_F(OptionsTest, BlockQuotasAreAListInTheFile) {
  const std::vector<BlockQuota> quotas =
      Parsed({"--config", WriteYaml(kTwo)}).block_quotas;
  ASSERT_EQ(quotas.size(), 2u);
  EXPECT_EQ(quotas[0], (BlockQuota{.name = "chat",
                                   .label = "* chat*",
                                   .floor_bytes = uint64_t{16} << 20,
                                   .cap_bytes = uint64_t{32} << 20}));
  EXPECT_EQ(quotas[1], (BlockQuota{.name = "code", .label = "code"}));
}

TEST_F(OptionsTest, PrintedBlockQuotasAreReadBackAsTheSame) {
  const std::string yaml = WriteYaml(kTwo);
  const Options options = Parsed({"--config", yaml});
  const std::string print =
      Parse({"--config", yaml, "--print-config"}).value().print;
  EXPECT_EQ(Parsed({"--config", WriteYaml(print)}).block_quotas,
            options.block_quotas);
  EXPECT_THAT(Parse({"--config", yaml, "--check-config"}).value().print,
              HasSubstr("block quota chat, label * chat*: floor of 16.0 MiB, "
                        "cap of 32.0 MiB\n"
                        "block quota code, label code: no floor, no cap\n"));
}

TEST_F(OptionsTest, BadBlockQuotasAreErrorsThatNameTheEntry) {
  std::string many = "block_quotas:\n";
  for (int i = 0; i < 17; ++i) {
    many += "  - {name: q" + std::to_string(i) + ", label: a}\n";
  }
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"block_quotas: 7",
       "line 1: block_quotas must be a list of maps of name, label, floor, "
       "cap"},
      {"block_quotas:\n  - {name: a, label: a, floor: 1, cop: 2}",
       "unknown key of block_quotas[0] 'cop'; did you mean 'cap'?"},
      {"block_quotas:\n  - {name: a, label: a, floor: [1]}",
       "line 2: block_quotas[0]: floor is ''; must be a size such as"},
      {many, "line 18: block_quotas[16]: there may be at most 16"}};
  for (const auto& [text, message] : cases) {
    EXPECT_THAT(YamlError(text), HasSubstr(message)) << text;
  }
}

TEST(OptionChangesTest, FloorsAndCapsOfTheSameBlockQuotasAreLive) {
  Options running;
  running.memory = uint64_t{1} << 30;
  running.block_quotas = {{.name = "a", .label = "a*"}};
  Options given = running;
  given.block_quotas[0].cap_bytes = uint64_t{1} << 29;
  OptionChanges changes = ChangesTo(running, given).value();
  EXPECT_THAT(changes.live, ElementsAre("block_quotas"));
  EXPECT_EQ(changes.options.block_quotas, given.block_quotas);

  given.block_quotas[0].label = "b*";
  changes = ChangesTo(running, given).value();
  EXPECT_THAT(changes.need_restart,
              ElementsAre("block_quotas (other names or patterns)"));

  given = running;
  given.block_quotas[0].floor_bytes = uint64_t{2} << 30;
  EXPECT_FALSE(ChangesTo(running, given).ok());
}

}  // namespace
}  // namespace pando
