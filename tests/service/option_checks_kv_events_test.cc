// Tests the checks of the options for the events that routers receive.
#include <ostream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/service/options_fixture.h"

namespace pando {
namespace {

using testing::ElementsAre;

const std::string kOn = "--kv-events=tcp://127.0.0.1:5557";

struct BadFlags {
  std::string name;
  std::vector<std::string> flags;
  std::string message;

  friend std::ostream& operator<<(std::ostream& out, const BadFlags& bad) {
    return out << bad.name;
  }
};

class KvEventOptions : public OptionsTest {};
class KvEventOptionsThatDoNotFit
    : public OptionsTest,
      public testing::WithParamInterface<BadFlags> {};

TEST_P(KvEventOptionsThatDoNotFit, AreNamedWithWhatTheyMayBe) {
  EXPECT_EQ(Error(GetParam().flags), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    EachCheck, KvEventOptionsThatDoNotFit,
    testing::Values(
        BadFlags{"NoScheme",
                 {"--kv-events=127.0.0.1:5557"},
                 "kv-events is '127.0.0.1:5557'; must be tcp://host:port with "
                 "a port from 1 to 65535, or empty"},
        BadFlags{"NoPort",
                 {"--kv-events=tcp://host:0"},
                 "kv-events is 'tcp://host:0'; must be tcp://host:port with a "
                 "port from 1 to 65535, or empty"},
        BadFlags{"Replay",
                 {kOn, "--kv-events-replay=tcp://host:65536"},
                 "kv-events-replay is 'tcp://host:65536'; must be "
                 "tcp://host:port with a port from 1 to 65535, or empty"},
        BadFlags{"MoreWorkersThanPorts",
                 {"--kv-events=tcp://*:65534", "--kv-events-workers=a,b,c"},
                 "kv-events is 'tcp://*:65534', and kv-events-workers are 3, "
                 "each with a port of its own from there on; the last port "
                 "must be at most 65535"},
        BadFlags{"CompanionAlone",
                 {"--kv-events-topic=x"},
                 "kv-events-topic is given, which needs kv-events"},
        BadFlags{"NamelessWorker",
                 {kOn, "--kv-events-topic=kv@{worker}"},
                 "kv-events-topic is 'kv@{worker}'; {worker} needs "
                 "kv-events-workers"},
        BadFlags{"UnknownNamespaces",
                 {kOn, "--kv-events-include=salted,secret"},
                 "kv-events-include has 'secret'; may have salted and bigram"},
        BadFlags{"SaltsInArrays",
                 {kOn, "--kv-events-form=array", "--kv-events-include=salted"},
                 "kv-events-include is given, which needs kv-events-form map; "
                 "it is array"},
        BadFlags{"TiersAlone",
                 {"--kv-events-tiers=yes"},
                 "kv-events-tiers is given, which needs kv-events"},
        BadFlags{"NoTiersToTell",
                 {kOn, "--kv-events-tiers=yes", "--tier-shared=redis://host:1",
                  "--model=m"},
                 "kv-events-tiers is given, which needs tier-host-bytes or "
                 "tier-disk"},
        BadFlags{"TiersInArrays",
                 {kOn, "--kv-events-form=array", "--kv-events-tiers=yes",
                  "--tier-host-bytes=1GiB"},
                 "kv-events-tiers is given, which needs kv-events-form map; it "
                 "is array"},
        BadFlags{"PartsOfPages",
                 {kOn, "--kv-events-block-tokens=24"},
                 "kv-events-block-tokens is 24; must be a multiple of "
                 "page-tokens, which is 16"}),
    [](const auto& test) { return test.param.name; });

TEST_F(KvEventOptions, ABlockIsAPageUnlessAskedOtherwise) {
  EXPECT_EQ(Parsed({kOn}).kv_events_block_tokens, 16);
  EXPECT_EQ(Parsed({kOn, "--page-tokens=4", "--kv-events-block-tokens=64"})
                .kv_events_block_tokens,
            64);
  EXPECT_EQ(Parsed({}).kv_events_block_tokens, 0);
}

TEST_F(KvEventOptions, SaltedAndBigramNamespacesMayBeIncludedInMaps) {
  EXPECT_THAT(
      Parsed({kOn, "--kv-events-include=salted,bigram"}).kv_events_include,
      ElementsAre("salted", "bigram"));
}

TEST_F(KvEventOptions, TiersMayBeToldInMaps) {
  EXPECT_FALSE(Parsed({kOn, "--tier-host-bytes=1GiB"}).kv_events_tiers);
  EXPECT_TRUE(Parsed({kOn, "--tier-host-bytes=1GiB", "--kv-events-tiers=yes"})
                  .kv_events_tiers);
}

TEST_F(KvEventOptions, TheLastWorkerMayHaveTheLastPort) {
  EXPECT_EQ(Parsed({"--kv-events=tcp://*:65534", "--kv-events-workers=a,b"})
                .kv_events_workers.size(),
            2);
}

}  // namespace
}  // namespace pando
