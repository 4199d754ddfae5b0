// Tests --model-config, which reads the config.json of a model.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/service/options_fixture.h"

namespace pando {
namespace {

using ::testing::HasSubstr;

constexpr char kQwen3[] = R"({
  "num_hidden_layers": 36, "num_attention_heads": 32,
  "num_key_value_heads": 8, "head_dim": 128, "hidden_size": 4096,
  "torch_dtype": "bfloat16"})";

class ModelConfigTest : public OptionsTest {
 protected:
  // Writes `text` to a config.json, and returns the flag that names its folder.
  std::string FlagFor(const std::string& text) {
    std::ofstream(dir_ + "/config.json") << text;
    return "--model-config=" + dir_;
  }
};

TEST_F(ModelConfigTest, SaysTheLayout) {
  const Options options = Parsed({FlagFor(kQwen3)});
  EXPECT_EQ(options.layers, 36u);
  EXPECT_EQ(options.heads, 8u);
  EXPECT_EQ(options.head_size, 128u);
  EXPECT_EQ(options.dtype, DType::kBFloat16);
}

TEST_F(ModelConfigTest, WhatIsGivenCounts) {
  const std::string flag = FlagFor(kQwen3);
  const Options options =
      Parsed({flag, "--dtype=float8_e4m3"}, {"PANDO_LAYERS=4"});
  EXPECT_EQ(options.dtype, DType::kFloat8E4M3);
  EXPECT_EQ(options.layers, 4u);
  EXPECT_EQ(options.heads, 8u);
}

TEST_F(ModelConfigTest, HeadsAreThoseOfAShard) {
  const std::string flag = FlagFor(kQwen3);
  EXPECT_EQ(Parsed({flag, "--pool-shards=4"}).heads, 2u);
  EXPECT_EQ(Parsed({flag, "--pool-shards=16"}).heads, 1u);
  EXPECT_THAT(Error({flag, "--pool-shards=3"}),
              HasSubstr("8 KV heads, which 3 shards cannot share evenly"));
}

TEST_F(ModelConfigTest, WhatOlderModelsLeaveOutFollows) {
  const Options options = Parsed({FlagFor(
      R"({"num_hidden_layers": 2, "num_attention_heads": 12,
          "hidden_size": 768, "num_key_value_heads": null,
          "dtype": "float16"})")});
  EXPECT_EQ(options.heads, 12u);
  EXPECT_EQ(options.head_size, 64u);
  EXPECT_EQ(options.dtype, DType::kFloat16);
}

TEST_F(ModelConfigTest, TheTextModelOfOneWithImagesCounts) {
  const Options options = Parsed({FlagFor(
      R"({"torch_dtype": "bfloat16", "text_config": {
          "num_hidden_layers": 34, "num_attention_heads": 8,
          "num_key_value_heads": 4, "head_dim": 256}})")});
  EXPECT_EQ(options.layers, 34u);
  EXPECT_EQ(options.head_size, 256u);
}

TEST_F(ModelConfigTest, ErrorsNameTheFileAndTheField) {
  EXPECT_EQ(Error({"--model-config=/nowhere"}),
            "model-config: /nowhere/config.json cannot be read");
  EXPECT_THAT(Error({FlagFor("[]")}), HasSubstr("is no JSON object"));
  EXPECT_THAT(Error({FlagFor("{")}), HasSubstr("is no JSON object"));
  EXPECT_THAT(Error({FlagFor(R"({"num_hidden_layers": -1})")}),
              HasSubstr("has no whole number from 1 as 'num_hidden_layers'"));
  EXPECT_THAT(Error({FlagFor(R"({"kv_lora_rank": 512})")}),
              HasSubstr("latent attention"));
  EXPECT_THAT(
      Error({FlagFor(R"({"num_hidden_layers": 1, "num_attention_heads": 1,
                         "head_dim": 8})")}),
      HasSubstr("has neither 'dtype' nor 'torch_dtype'"));
  EXPECT_THAT(Error({FlagFor(kQwen3), "--page-bytes=64"}),
              HasSubstr("page-bytes and model-config are both given"));
}

TEST_F(ModelConfigTest, ThePrintedConfigSaysWhereTheLayoutIsFrom) {
  const auto line = Parse({FlagFor(kQwen3), "--print-config"});
  EXPECT_THAT(line.value().print, HasSubstr("layers: 36  # --model-config"));
}

}  // namespace
}  // namespace pando
