// Tests the checks of options.
#include <ostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/service/options_fixture.h"

namespace pando {
namespace {

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
                 "filo, priority, slru, reuse"},
        BadValue{"--tier-write=write_back",
                 "tier-write is 'write_back'; must be one of "
                 "at-once, first-hit, second-hit"},
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
        BadValue{"--socket=/run/pando/memory.sock",
                 "memory-socket is '/run/pando/memory.sock'; must differ from "
                 "socket"},
        BadValue{"--layers=5000", "layers is 5000; must be from 1 to 4096"}));

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

TEST_F(OptionsTest, PageBytesDescribeAPageWithoutHeads) {
  const Options options =
      Parsed({"--page-bytes=12KiB", "--layers=3", "--page-tokens=32",
              "--page-format=vllm", "--pool-bytes=1200KiB"});
  EXPECT_EQ(options.pool_pages, 100u);
  const KvShape shape = ShapeOf(options);
  EXPECT_EQ(shape.opaque_bytes, 4096u);
  EXPECT_EQ(shape.page_format, "vllm");
}

TEST_F(OptionsTest, PageBytesAreAsManyInEachLayer) {
  EXPECT_EQ(Error({"--page-bytes=100", "--layers=3"}),
            "page-bytes is 100; must be a multiple of layers, 3, so that a "
            "page has as many in each");
}

TEST_F(OptionsTest, PageBytesAndHeadsExcludeEachOther) {
  // The first value differs from the default of heads, and the second one is
  // the default.
  for (const char* heads : {"--heads=2", "--heads=8"}) {
    EXPECT_EQ(Error({"--page-bytes=96", "--layers=3", heads}),
              "page-bytes and heads are both given; a page is described by its "
              "bytes or by its heads");
  }
  EXPECT_EQ(Error({"--config", WriteYaml("dtype: bfloat16\n")},
                  {"PANDO_PAGE_BYTES=64"}),
            "page-bytes and dtype are both given; a page is described by its "
            "bytes or by its heads");
}

TEST_F(OptionsTest, APageFormatHasNoSemicolons) {
  EXPECT_EQ(Error({"--page-format=a;b"}),
            "page_format is 'a;b'; must be without semicolons");
}

TEST_F(OptionsTest, BlockMemoryHasAtLeastOneExtent) {
  EXPECT_EQ(Error({"--memory=16MiB", "--block-extent=32MiB"}),
            "memory is 16777216; must be from 33554432, which is block-extent, "
            "to 8796093022208");
  EXPECT_EQ(Parsed({"--memory=16MiB"}).memory, uint64_t{16} << 20);
}

TEST_F(OptionsTest, ABlockExtentIsAPowerOfTwo) {
  for (const char* bad : {"3MiB", "2048"}) {
    const std::string error = Error({absl::StrCat("--block-extent=", bad)});
    EXPECT_THAT(error, testing::HasSubstr("must be a power of two from 4096"));
  }
}

TEST_F(OptionsTest, WithMemoryAndNoOptionOfAPoolThereIsNone) {
  const Options alone = Parsed({"--memory=16MiB", "--model=tiny"});
  EXPECT_FALSE(alone.has_pool);
  EXPECT_EQ(alone.pool_pages, 2u);
  const Options both = Parsed({"--memory=16MiB", "--layers=3"});
  EXPECT_TRUE(both.has_pool);
  EXPECT_EQ(both.pool_pages, Options().pool_pages);
}

TEST_F(OptionsTest, WithoutOptionsThereAreBlocksInMemoryOfAChosenSize) {
  const Options none = Parsed({"--model=tiny"});
  EXPECT_FALSE(none.has_pool);
  EXPECT_TRUE(none.chooses_memory);
  const Options sized = Parsed({"--memory=16MiB"});
  EXPECT_FALSE(sized.chooses_memory);
  for (const char* of_pages :
       {"--heads=2", "--tier-host-bytes=4GiB", "--verify-pages=0.5",
        "--kv-events=tcp://127.0.0.1:5557"}) {
    const Options pool = Parsed({of_pages, "--model=tiny"});
    EXPECT_TRUE(pool.has_pool) << of_pages;
    EXPECT_FALSE(pool.chooses_memory) << of_pages;
    EXPECT_EQ(pool.memory, 0u) << of_pages;
  }
}

}  // namespace
}  // namespace pando
