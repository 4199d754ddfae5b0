#include "service/options.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "service/option_table.h"

namespace pando {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

class OptionsTest : public testing::Test {
 protected:
  OptionsTest() {
    std::string name =
        (std::filesystem::temp_directory_path() / "pando_options_XXXXXX")
            .string();
    dir_ = mkdtemp(name.data());
  }
  ~OptionsTest() override { std::filesystem::remove_all(dir_); }

  std::string WriteYaml(const std::string& text) {
    const std::string path = dir_ + "/pando.yaml";
    std::ofstream(path) << text;
    return path;
  }

  static absl::StatusOr<CommandLine> Parse(
      const std::vector<std::string>& flags,
      const std::vector<std::string>& environment = {}) {
    std::vector<const char*> argv = {"pandod"};
    for (const std::string& flag : flags) argv.push_back(flag.c_str());
    std::vector<const char*> env;
    for (const std::string& entry : environment) env.push_back(entry.c_str());
    env.push_back(nullptr);
    return ParseOptions(static_cast<int>(argv.size()), argv.data(), env.data());
  }

  static Options Parsed(const std::vector<std::string>& flags,
                        const std::vector<std::string>& environment = {}) {
    const absl::StatusOr<CommandLine> line = Parse(flags, environment);
    EXPECT_TRUE(line.ok()) << line.status();
    return line.ok() ? line->options : Options();
  }

  static std::string Error(const std::vector<std::string>& flags,
                           const std::vector<std::string>& environment = {}) {
    const absl::Status status = Parse(flags, environment).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  }

  std::string YamlError(const std::string& text) {
    return Error({"--config", WriteYaml(text)});
  }

  std::string dir_;
};

TEST_F(OptionsTest, NothingGivenMeansTheDefaults) {
  const Options options = Parsed({}, {"HOME=/root", "PANDOX=1"});
  EXPECT_EQ(options.socket, "/run/pando/pando.sock");
  EXPECT_EQ(options.memory_socket, "/run/pando/memory.sock");
  EXPECT_EQ(options.tcp, "");
  EXPECT_EQ(options.http, "127.0.0.1:9464");
  EXPECT_EQ(options.pool_pages, 4096u);
  EXPECT_EQ(options.session_grace, absl::Seconds(2));
  EXPECT_EQ(options.dtype, DType::kBFloat16);
}

// Sets every option to a value that is not its default, in each of the ways.
const std::vector<std::pair<std::string, std::string>>& OtherValues() {
  static const auto* const values =
      new std::vector<std::pair<std::string, std::string>>{
          {"socket", "/tmp/a.sock"},
          {"memory-socket", "/tmp/b.sock"},
          {"socket-mode", "0600"},
          {"socket-group", "pando"},
          {"allowed-uids", "1000,1001"},
          {"tcp", "0.0.0.0:7000"},
          {"tls-certificate", "/tls/tls.crt"},
          {"tls-key", "/tls/tls.key"},
          {"tls-client-ca", "/tls/ca.crt"},
          {"http", "[::1]:80"},
          {"http-hosts", "pando.example,pando"},
          {"console", "no"},
          {"console-show-tokens", "yes"},
          {"pool-pages", "77"},
          {"pool-memory", "cuda"},
          {"pool-devices", "1,0,GPU-7"},
          {"pool-zero", "yes"},
          {"pool-shards", "3"},
          {"page-tokens", "32"},
          {"layers", "5"},
          {"kv-planes", "1"},
          {"heads", "6"},
          {"head-size", "64"},
          {"dtype", "float8_e4m3"},
          {"layout-order", "page_first"},
          {"model", "tiny"},
          {"eviction-policy", "slru"},
          {"low-free-pages", "5"},
          {"high-free-pages", "9"},
          {"session-grace", "3s"},
          {"quarantine", "1m"},
          {"attach-token-ttl", "1.5s"},
          {"max-tokens-per-request", "99"},
          {"max-locks-per-session", "7"},
          {"max-reserved-pages-per-session", "9"},
          {"max-attach-tokens-per-session", "2"},
          {"max-calls-per-second", "1000"},
          {"max-calls-per-connection", "50"},
          {"event-history", "100"},
          {"drain-timeout", "0"},
          {"check-invariants-every", "30s"},
          {"verify-pages", "0.25"},
          {"log-level", "debug"},
          {"log-format", "json"},
          {"slow-call", "20ms"}};
  return *values;
}

void ExpectOtherValues(const Options& options) {
  size_t compared = 0;
  for (const OptionSpec& spec : OptionTable()) {
    for (const auto& [name, value] : OtherValues()) {
      if (spec.name != name) continue;
      EXPECT_EQ(spec.get(options), value) << name;
      EXPECT_NE(spec.get(Options()), value) << name;
      ++compared;
    }
  }
  // pool-bytes and pool-fraction exclude pool-pages, tcp-insecure excludes
  // certificates; they have tests of their own.
  EXPECT_EQ(compared, OptionTable().size() - 3);
}

TEST_F(OptionsTest, EveryOptionIsAFlag) {
  std::vector<std::string> flags;
  for (const auto& [name, value] : OtherValues()) {
    flags.push_back("--" + name);
    flags.push_back(value);
  }
  ExpectOtherValues(Parsed(flags));
}

TEST_F(OptionsTest, EveryOptionIsAnEnvironmentVariable) {
  std::vector<std::string> environment;
  for (const auto& [name, value] : OtherValues()) {
    std::string variable = "PANDO_";
    for (char c : name) variable += c == '-' ? '_' : std::toupper(c);
    environment.push_back(variable + "=" + value);
  }
  ExpectOtherValues(Parsed({}, environment));
}

TEST_F(OptionsTest, EveryOptionIsAYamlKey) {
  std::string text;
  for (const auto& [name, value] : OtherValues()) {
    text += name + ": \"" + value + "\"\n";
  }
  ExpectOtherValues(Parsed({"--config", WriteYaml(text)}));
}

TEST_F(OptionsTest, NestedYamlMapsJoinTheirKeys) {
  const Options options =
      Parsed({"--config", WriteYaml("pool:\n  pages: 50\n  shards: 2\n"
                                    "session: {grace: 4s}\nhead-size: 32\n")});
  EXPECT_EQ(options.pool_pages, 50u);
  EXPECT_EQ(options.pool_shards, 2u);
  EXPECT_EQ(options.session_grace, absl::Seconds(4));
  EXPECT_EQ(options.head_size, 32u);
}

TEST_F(OptionsTest, FlagsOverrideTheEnvironmentWhichOverridesTheFile) {
  const std::string yaml = WriteYaml("pool-pages: 10\nlayers: 10\nheads: 10\n");
  const Options options = Parsed({"--config", yaml, "--pool-pages=30"},
                                 {"PANDO_POOL_PAGES=20", "PANDO_LAYERS=20"});
  EXPECT_EQ(options.pool_pages, 30u);
  EXPECT_EQ(options.layers, 20u);
  EXPECT_EQ(options.heads, 10u);
}

TEST_F(OptionsTest, TheFileMayBeNamedByTheEnvironment) {
  const std::string yaml = WriteYaml("layers: 10\n");
  EXPECT_EQ(Parsed({}, {"PANDO_CONFIG=" + yaml}).layers, 10u);
}

TEST_F(OptionsTest, TheConfigFlagOverridesTheOneOfTheEnvironment) {
  const std::string yaml = WriteYaml("layers: 10\n");
  EXPECT_EQ(
      Parsed({"--config", yaml}, {"PANDO_CONFIG=/nowhere/pando.yaml"}).layers,
      10u);
}

TEST_F(OptionsTest, AnEmptyFileChangesNothing) {
  EXPECT_EQ(Parsed({"--config", WriteYaml("# nothing\n")}).pool_pages, 4096u);
}

TEST_F(OptionsTest, TheLastOfTwoFlagsCounts) {
  EXPECT_EQ(Parsed({"--layers=3", "--layers=4"}).layers, 4u);
}

TEST_F(OptionsTest, AnEmptyValueTurnsAnAddressOff) {
  EXPECT_THAT(Parsed({"--http=", "--layers=3"}).http, IsEmpty());
  EXPECT_THAT(Parsed({"--http", "", "--layers=3"}).http, IsEmpty());
  EXPECT_THAT(Parsed({}, {"PANDO_HTTP=", "PANDO_LAYERS=3"}).http, IsEmpty());
  EXPECT_THAT(Parsed({"--config", WriteYaml("http:\n")}).http, IsEmpty());
}

TEST_F(OptionsTest, TheMemorySocketIsBesideTheSocket) {
  EXPECT_EQ(Parsed({"--socket=/tmp/x/gpu0.sock"}).memory_socket,
            "/tmp/x/memory.sock");
  EXPECT_EQ(Parsed({"--socket=gpu0.sock"}).memory_socket, "memory.sock");
}

TEST_F(OptionsTest, PoolBytesGivesThePagesThatFit) {
  // The default page is 2 MiB.
  EXPECT_EQ(Parsed({"--pool-bytes=2GiB"}).pool_pages, 1024u);
  EXPECT_EQ(Parsed({"--pool-bytes=7MiB"}).pool_pages, 3u);
  EXPECT_EQ(Parsed({"--pool-bytes=4194304"}).pool_pages, 2u);
}

TEST_F(OptionsTest, PoolBytesAndPoolPagesExcludeEachOther) {
  EXPECT_EQ(Error({"--pool-bytes=2GiB"}, {"PANDO_POOL_PAGES=5"}),
            "pool-pages and pool-bytes are both given; give one of them");
}

TEST_F(OptionsTest, APoolOfTooFewBytesIsRefusedWithTheLimit) {
  EXPECT_EQ(Error({"--pool-bytes=3MiB"}),
            "pool-bytes is 3145728, 1 pages of 2097152 bytes; must be from 2 "
            "to 4294967295 pages");
}

TEST_F(OptionsTest, AFractionOfTheFreeMemoryIsTurnedIntoPagesLater) {
  const Options options =
      Parsed({"--pool-memory=cuda", "--pool-fraction=0.85", "--heads=6",
              "--low-free-pages=5000", "--high-free-pages=5000"});
  EXPECT_EQ(options.pool_fraction, 0.85);
  EXPECT_EQ(Parse({"--check-config", "--pool-memory=cuda",
                   "--pool-fraction=0.85", "--pool-devices=1,3"})
                .value()
                .print,
            "config ok: pages of 16 tokens and 2097152 bytes, in 0.85 of the "
            "free memory on each of the GPUs 1, 3\n"
            "eviction policy lru, no pages kept free\n");
}

TEST_F(OptionsTest, AFractionExcludesTheOtherSizes) {
  EXPECT_EQ(Error({"--pool-fraction=0.5", "--pool-bytes=2GiB"}),
            "pool-bytes and pool-fraction are both given; give one of them");
}

TEST_F(OptionsTest, EachShardHasADevice) {
  EXPECT_THAT(Parsed({"--pool-memory=cuda"}).pool_devices, ElementsAre("0"));
  EXPECT_THAT(Parsed({"--pool-memory=cuda", "--pool-shards=3"}).pool_devices,
              ElementsAre("0", "1", "2"));
  EXPECT_EQ(
      Parsed({"--pool-memory=cuda", "--pool-devices=4,GPU-6"}).pool_shards, 2u);
  EXPECT_EQ(
      Error({"--pool-memory=cuda", "--pool-devices=4,5", "--pool-shards=3"}),
      "pool-devices names 2 devices; pool-shards is 3");
  EXPECT_THAT(Parsed({}).pool_devices, IsEmpty());
}

TEST_F(OptionsTest, WhatOnlyGpusHaveIsNotAskedOfTheHost) {
  EXPECT_EQ(Error({"--pool-devices=0"}),
            "pool-devices is given, which needs pool-memory cuda");
  EXPECT_EQ(Error({"--pool-fraction=0.5"}),
            "pool-fraction is given, which needs pool-memory cuda");
  EXPECT_EQ(Error({"--pool-zero=yes"}),
            "pool-zero is given, which needs pool-memory cuda");
}

TEST_F(OptionsTest, UnknownNamesAreErrorsThatSuggestTheNearest) {
  EXPECT_EQ(Error({"--pool-page", "5"}),
            "unknown flag '--pool-page'; did you mean '--pool-pages'?");
  EXPECT_EQ(Error({"--chek-config"}),
            "unknown flag '--chek-config'; did you mean '--check-config'?");
  EXPECT_EQ(Error({"serve"}), "unexpected argument 'serve'; see --help");
  EXPECT_EQ(Error({}, {"PANDO_POOLPAGES=5"}),
            "unknown environment variable 'PANDO_POOLPAGES'; did you mean "
            "'PANDO_POOL_PAGES'?");
  EXPECT_THAT(YamlError("layers: 3\npool:\n  page: 5\n"),
              HasSubstr("pando.yaml: line 3: unknown key 'pool-page'; did you "
                        "mean 'pool-pages'?"));
}

TEST_F(OptionsTest, ServiceVariablesOfKubernetesAreNoOptions) {
  EXPECT_EQ(
      Parsed({}, {"PANDO_SERVICE_HOST=10.0.0.1", "PANDO_SERVICE_PORT=9464",
                  "PANDO_SERVICE_PORT_METRICS=9464",
                  "PANDO_PORT=tcp://10.0.0.1:9464",
                  "PANDO_PORT_9464_TCP_ADDR=10.0.0.1",
                  "PANDO_METRICS_SERVICE_HOST=10.0.0.1"})
          .http,
      "127.0.0.1:9464");
}

TEST_F(OptionsTest, TheAddressForPandoctlIsNoOption) {
  EXPECT_EQ(Parsed({}, {"PANDO_ADDRESS=unix:/tmp/pando.sock"}).socket,
            "/run/pando/pando.sock");
}

TEST_F(OptionsTest, OnlyARegularFileIsRead) {
  const std::string fifo = dir_ + "/fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  for (const std::string& path : {fifo, dir_}) {
    EXPECT_EQ(Error({"--config", path}),
              "--config: " + path + " is not a regular file");
  }
  const std::string link = dir_ + "/link";
  std::filesystem::create_symlink(WriteYaml("layers: 10\n"), link);
  EXPECT_EQ(Parsed({"--config", link}).layers, 10u);
}

TEST_F(OptionsTest, BrokenFilesAreErrorsThatNameTheFile) {
  EXPECT_THAT(YamlError("layers: [1"), HasSubstr("pando.yaml: yaml-cpp"));
  EXPECT_THAT(YamlError("just text"), HasSubstr("must be a map of options"));
  EXPECT_THAT(YamlError("layers: [1, 2]"), HasSubstr("layers is a list"));
  EXPECT_THAT(YamlError("layers: 1\n---\nheads: 2\n"),
              HasSubstr("line 3: is a second document"));
  EXPECT_THAT(YamlError("layers: 1\nlayers: 2\n"),
              HasSubstr("line 2: layers is given twice"));
  EXPECT_THAT(YamlError("pool-pages: 2\npool: {pages: 3}"),
              HasSubstr("pool-pages is given twice"));
  EXPECT_THAT(Error({"--config=/nowhere/pando.yaml"}),
              HasSubstr("/nowhere/pando.yaml"));
}

struct BadValue {
  std::string flag;
  std::string message;

  friend std::ostream& operator<<(std::ostream& out, const BadValue& bad) {
    return out << bad.flag;
  }
};

class OptionsBadValue : public OptionsTest,
                        public testing::WithParamInterface<BadValue> {};

TEST_P(OptionsBadValue, NamesOptionValueAndLimit) {
  EXPECT_EQ(Error({GetParam().flag}), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    EveryKind, OptionsBadValue,
    testing::Values(
        BadValue{"--pool-pages=1",
                 "pool-pages is '1'; must be a whole number "
                 "from 2 to 4294967295"},
        BadValue{"--pool-pages=-3",
                 "pool-pages is '-3'; must be a whole "
                 "number from 2 to 4294967295"},
        BadValue{"--pool-shards=251",
                 "pool-shards is '251'; must be a whole "
                 "number from 1 to 250"},
        BadValue{"--pool-bytes=2 gibs",
                 "pool-bytes is '2 gibs'; must be a size such as 512MiB or "
                 "2GiB"},
        BadValue{"--pool-bytes=-1GiB",
                 "pool-bytes is '-1GiB'; must be a size such as 512MiB or "
                 "2GiB"},
        BadValue{"--pool-bytes=99999999EiB",
                 "pool-bytes is '99999999EiB'; must be a size such as 512MiB "
                 "or 2GiB"},
        BadValue{"--pool-fraction=1.5",
                 "pool-fraction is '1.5'; must be a number from 0 to 1"},
        BadValue{"--pool-fraction=nan",
                 "pool-fraction is 'nan'; must be a number from 0 to 1"},
        BadValue{"--pool-memory=gpu",
                 "pool-memory is 'gpu'; must be one of host, cuda"},
        BadValue{"--pool-zero=1", "pool-zero is '1'; must be yes or no"},
        BadValue{"--quarantine=10",
                 "quarantine is '10'; must be a duration with unit from 0 to "
                 "1h"},
        BadValue{"--attach-token-ttl=0",
                 "attach-token-ttl is '0'; must be a duration with unit from "
                 "100ms to 1h"},
        BadValue{"--log-level=loud",
                 "log-level is 'loud'; must be one of "
                 "debug, info, warning, error"},
        BadValue{"--eviction-policy=random",
                 "eviction policy is 'random'; it may be lru, lfu, fifo, mru, "
                 "filo, priority, slru"},
        BadValue{"--low-free-pages=5",
                 "low-free-pages is 5 and high-free-pages is 0; give both, or "
                 "neither"},
        BadValue{"--high-free-pages=5",
                 "low-free-pages is 0 and high-free-pages is 5; give both, or "
                 "neither"},
        BadValue{"--http=9464",
                 "http is '9464'; must be host:port with a port "
                 "up to 65535, or empty"},
        BadValue{"--tcp=localhost:70000",
                 "tcp is 'localhost:70000'; must be host:port with a port up "
                 "to 65535, or empty"},
        BadValue{"--socket-mode=888",
                 "socket-mode is '888'; must be octal, from 000 to 777"},
        BadValue{"--socket-mode=02660",
                 "socket-mode is '02660'; must be octal, from 000 to 777"},
        BadValue{
            "--allowed-uids=,",
            "allowed-uids is ','; must be whole numbers with commas between"},
        BadValue{"--allowed-uids=1000,root",
                 "allowed-uids is '1000,root'; must be whole numbers with "
                 "commas between"},
        BadValue{"--socket=",
                 "socket is '', 0 bytes; must be a path of 1 to "
                 "107 bytes"},
        BadValue{"--socket=/run/pando/memory.sock",
                 "memory-socket is '/run/pando/memory.sock'; must differ from "
                 "socket"},
        BadValue{"--layers=5000", "layers is 5000; must be from 1 to 4096"}));

TEST_F(OptionsTest, CheckConfigSaysHowLargeThePoolIs) {
  EXPECT_EQ(Parse({"--check-config", "--pool-shards=2"}).value().print,
            "config ok: 4096 pages of 16 tokens and 2097152 bytes, 8589934592 "
            "bytes (8.0 GiB) on each of 2 shard(s)\n"
            "eviction policy lru, no pages kept free\n");
}

TEST_F(OptionsTest, TheWatermarkIsInOrderAndWithinThePool) {
  EXPECT_EQ(Error({"--low-free-pages=6", "--high-free-pages=5"}),
            "low-free-pages is 6; must be at most high-free-pages, which is 5");
  EXPECT_EQ(
      Error({"--low-free-pages=6", "--high-free-pages=77", "--pool-pages=77"}),
      "high-free-pages is 77; must be less than the pages of the pool, "
      "77");
  EXPECT_EQ(
      Parsed({"--low-free-pages=76", "--high-free-pages=76", "--pool-pages=77"})
          .high_free_pages,
      76u);
}

constexpr char kTwoQuotas[] =
    "quotas:\n"
    "  - {class: a, extra_key: \"tenant-a/*\", floor_pages: 10, cap_pages: "
    "20}\n"
    "  - class: b\n"
    "    extra_key: b\n";

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
       "extra_key, floor_pages, cap_pages"},
      {"quotas: {class: a}", "line 1: quotas must be a list of maps"},
      {"quotas: []\nquotas: []", "line 2: quotas is given twice"},
      {"quota: []", "unknown key 'quota'; did you mean 'quotas'?"},
      {first + "  - 7",
       "line 3: quotas[1] must be a map of class, extra_key, floor_pages, "
       "cap_pages"},
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

// Every option by its text, and the quotas.
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
