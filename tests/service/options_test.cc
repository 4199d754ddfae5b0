// Tests the sources of options: flags, environment, file and defaults.
#include <sys/stat.h>

#include <cctype>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "base/default_socket.h"
#include "base/eviction_policies.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "service/options/option_table.h"
#include "tests/service/options_fixture.h"

namespace pando {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

TEST_F(OptionsTest, NothingGivenMeansTheDefaults) {
  const Options options = Parsed({}, {"HOME=/root", "PANDOX=1"});
  EXPECT_EQ(options.socket, SocketToServe());
  EXPECT_THAT(options.memory_socket, EndsWith("/memory.sock"));
  EXPECT_EQ(options.tcp, "");
  EXPECT_EQ(options.http, "127.0.0.1:9464");
  EXPECT_FALSE(options.has_pool);
  EXPECT_EQ(options.session_grace, absl::Seconds(2));
  EXPECT_EQ(options.dtype, DType::kBFloat16);
}

TEST_F(OptionsTest, ThePoliciesThatMayBeChosenAreThoseOfTheList) {
  const std::vector<std::string> names(kEvictionPolicyNames.begin(),
                                       kEvictionPolicyNames.end());
  for (const OptionSpec& spec : OptionTable()) {
    if (spec.name != "eviction-policy") continue;
    EXPECT_EQ(spec.value_name, absl::StrJoin(names, "|"));
  }
}

// Expects that each option in OtherValues() has its value from there.
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
  // Seven options have tests of their own, because they do not go with
  // OtherValues(). pool-bytes and pool-fraction exclude pool-pages, page-bytes
  // excludes the options for heads, and tcp-insecure excludes certificates.
  // kv-events-include and kv-events-tiers exclude the form array, and
  // model-config needs a file.
  EXPECT_EQ(compared, OptionTable().size() - 7);
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
  const Options options = Parsed({"--config", WriteYaml("# nothing\n")});
  EXPECT_EQ(options.max_lanes, Options().max_lanes);
}

TEST_F(OptionsTest, TheLastOfTwoFlagsCounts) {
  EXPECT_EQ(Parsed({"--layers=3", "--layers=4"}).layers, 4u);
}

TEST_F(OptionsTest, AValueMayEndWithAnEqualsSign) {
  EXPECT_EQ(Parsed({"--model=bW9kZWw="}).model, "bW9kZWw=");
  EXPECT_EQ(Parsed({}, {"PANDO_MODEL=bW9kZWw="}).model, "bW9kZWw=");
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
  EXPECT_EQ(Error({"--pool-bytes=3MiB", "--layers=32"}),
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
}

TEST_F(OptionsTest, MoversAreAwaitedBesideTheSocketWhereATierIsOfGpus) {
  const std::string tier = "--tier-host-bytes=1GiB";
  const std::string socket = "--socket=/tmp/x/a.sock";
  EXPECT_EQ(Parsed({socket, tier, "--pool-memory=cuda"}).mover_socket,
            "/tmp/x/mover.sock");
  EXPECT_EQ(Parsed({socket, tier}).mover_socket, "");
  EXPECT_EQ(Parsed({socket, "--pool-memory=cuda"}).mover_socket, "");
  EXPECT_EQ(Parsed({tier, "--mover-socket=/tmp/m"}).mover_socket, "/tmp/m");
  EXPECT_EQ(Error({"--mover-socket=/tmp/m"}),
            "mover-socket is '/tmp/m', which needs a tier to copy to");
  EXPECT_EQ(Error({tier, socket, "--mover-socket=/tmp/x/a.sock"}),
            "mover-socket is '/tmp/x/a.sock'; must differ from socket and "
            "memory-socket");
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

// tests/e2e/test_process.py checks the same for all variables that other
// programs of Pando read.
TEST_F(OptionsTest, VariablesOfClientsAndEnginesAreNoOptions) {
  EXPECT_EQ(Parsed({}, {"PANDO_ADDRESS=unix:/tmp/pando.sock", "PANDO_TOKEN=a",
                        "PANDO_WAIT_MS=50", "PANDO_ANY_ENGINE_VERSION=1",
                        "PANDO_ANY_MODEL_CONFIGURATION=1", "PANDO_CACHE=/c",
                        "PANDO_MINISGL=/m", "PANDO_TEST_OPERATIONS=5",
                        "PANDO_TRACES=/t"})
                .socket,
            Parsed({}).socket);
  EXPECT_EQ(Error({}, {"PANDO_ADRESS=a"}),
            "unknown environment variable 'PANDO_ADRESS'; did you mean "
            "'PANDO_ADDRESS'?");
}

TEST_F(OptionsTest, OtherWordsForAnOptionSuggestIt) {
  for (const auto& [word, option] :
       std::vector<std::pair<std::string, std::string>>{
           {"kv-heads", "heads"},
           {"num_key_value_heads", "heads"},
           {"num-heads", "heads"},
           {"num-layers", "layers"},
           {"head-dim", "head-size"},
           {"pool-size", "pool-bytes"}}) {
    EXPECT_EQ(
        Error({"--" + word + "=3"}),
        "unknown flag '--" + word + "'; did you mean '--" + option + "'?");
    EXPECT_THAT(YamlError(word + ": 3\n"),
                HasSubstr("unknown key '" + word + "'; did you mean '" +
                          option + "'?"));
  }
  EXPECT_THAT(YamlError("pool: {size: 3GiB}\n"),
              HasSubstr("did you mean 'pool-bytes'?"));
  EXPECT_EQ(Error({}, {"PANDO_NUM_LAYERS=3"}),
            "unknown environment variable 'PANDO_NUM_LAYERS'; did you mean "
            "'PANDO_LAYERS'?");
}

TEST_F(OptionsTest, OtherWordsForAnElementTypeSuggestIt) {
  constexpr char kMeant[] =
      "dtype is 'bf16'; did you mean 'bfloat16'? It must be one of float32, "
      "float16, bfloat16, float8_e4m3, float8_e5m2";
  EXPECT_EQ(Error({"--dtype=bf16"}), kMeant);
  EXPECT_EQ(YamlError("dtype: bf16\n"), kMeant);
  EXPECT_THAT(Error({"--dtype=FP16"}), HasSubstr("did you mean 'float16'?"));
  EXPECT_THAT(Error({"--dtype=int4"}), Not(HasSubstr("did you mean")));
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

TEST_F(OptionsTest, TheMemorySocketIsToldToClientsByItsWholePath) {
  const std::filesystem::path folder = std::filesystem::current_path();
  EXPECT_EQ(Parsed({"--memory-socket=m.sock"}).memory_socket,
            folder / "m.sock");
  EXPECT_EQ(Parsed({"--socket=p.sock"}).memory_socket, folder / "memory.sock");
}

TEST_F(OptionsTest, TextsOfAnyLengthAreRefusedInASentence) {
  const std::string text(60'000, 'A');
  EXPECT_THAT(Error({}, {"PANDO_" + text + "=1"}),
              StartsWith("unknown environment variable 'PANDO_AAAA"));
  EXPECT_THAT(Error({}, {"PANDO_" + text + "_PORT=1"}),
              StartsWith("unknown environment variable 'PANDO_AAAA"));
  EXPECT_THAT(Error({"--socket-mode=" + std::string(60'000, '7')}),
              HasSubstr("must be octal"));
}

}  // namespace
}  // namespace pando
