#include "service/options/model_config.h"

#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"

namespace pando {
namespace {

using Json = nlohmann::json;

absl::Status Error(const std::string& path, const std::string& what) {
  return absl::InvalidArgumentError(
      absl::StrFormat("model-config: %s %s", path, what));
}

// Returns a whole number from 1, or none if the field is missing, null or no
// such number.
std::optional<uint32_t> NumberIn(const Json& config, const char* field) {
  const auto found = config.find(field);
  if (found == config.end() || !found->is_number_unsigned()) {
    return std::nullopt;
  }
  const auto number = found->get<uint64_t>();
  if (number < 1 || number > std::numeric_limits<uint32_t>::max()) {
    return std::nullopt;
  }
  return static_cast<uint32_t>(number);
}

std::string TextIn(const Json& config, const char* field) {
  const auto found = config.find(field);
  return found != config.end() && found->is_string() ? found->get<std::string>()
                                                     : "";
}

// Returns the part of the config that describes the text model. In a model of
// text and images it is a map of its own.
const Json& TextModelIn(const Json& config) {
  const auto inner = config.find("text_config");
  return inner != config.end() && inner->is_object() ? *inner : config;
}

absl::StatusOr<uint32_t> Required(const std::string& path, const Json& config,
                                  const char* field) {
  const std::optional<uint32_t> number = NumberIn(config, field);
  if (number.has_value()) return *number;
  return Error(path, absl::StrFormat(
                         "has no whole number from 1 as '%s'; give --layers, "
                         "--heads, --head-size and --dtype instead",
                         field));
}

}  // namespace

absl::StatusOr<ModelConfig> ReadModelConfig(const std::string& folder) {
  const std::string path = folder + "/config.json";
  std::ifstream file(path);
  if (!file) return Error(path, "cannot be read");
  const Json whole = Json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!whole.is_object()) return Error(path, "is no JSON object");
  const Json& config = TextModelIn(whole);
  if (NumberIn(config, "kv_lora_rank").has_value()) {
    return Error(path,
                 "is of a model with latent attention (kv_lora_rank); give "
                 "--layers, --kv-planes, --heads, --head-size and --dtype "
                 "instead");
  }
  ModelConfig read;
  ASSIGN_OR_RETURN(read.layers, Required(path, config, "num_hidden_layers"));
  ASSIGN_OR_RETURN(const uint32_t heads,
                   Required(path, config, "num_attention_heads"));
  read.kv_heads = NumberIn(config, "num_key_value_heads").value_or(heads);
  if (const auto size = NumberIn(config, "head_dim")) {
    read.head_size = *size;
  } else {
    ASSIGN_OR_RETURN(const uint32_t hidden,
                     Required(path, config, "hidden_size"));
    read.head_size = hidden / heads;
  }
  for (const Json* const part : {&config, &whole}) {
    for (const char* const field : {"dtype", "torch_dtype"}) {
      const std::string name = TextIn(*part, field);
      if (name.empty()) continue;
      ASSIGN_OR_RETURN(read.dtype, ParseDType(name));
      return read;
    }
  }
  return Error(path,
               "has neither 'dtype' nor 'torch_dtype'; give --layers, "
               "--heads, --head-size and --dtype instead");
}

absl::StatusOr<uint32_t> HeadsOfShard(uint32_t kv_heads, uint32_t shards) {
  if (kv_heads % shards == 0) return kv_heads / shards;
  if (shards % kv_heads == 0) return 1;
  return absl::InvalidArgumentError(absl::StrFormat(
      "model-config: the model has %u KV heads, which %u shards cannot share "
      "evenly; pool-shards must divide them, or be a multiple",
      kv_heads, shards));
}

}  // namespace pando
