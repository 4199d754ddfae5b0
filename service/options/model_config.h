#ifndef PANDO_SERVICE_OPTIONS_MODEL_CONFIG_H_
#define PANDO_SERVICE_OPTIONS_MODEL_CONFIG_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "gpu/kv_layout.h"

namespace pando {

// What config.json of a model says of its KV.
struct ModelConfig {
  uint32_t layers = 0;
  // Of the whole model, not of one tensor-parallel rank.
  uint32_t kv_heads = 0;
  uint32_t head_size = 0;
  DType dtype = DType::kBFloat16;
};

// Reads FOLDER/config.json, as Hugging Face's models have it. An error names
// the file, and the field at fault.
absl::StatusOr<ModelConfig> ReadModelConfig(const std::string& folder);

// The KV heads of one of `shards` tensor-parallel ranks: engines give each rank
// at least one, so that some have the same where there are more ranks. An error
// where they cannot be shared out evenly.
absl::StatusOr<uint32_t> HeadsOfShard(uint32_t kv_heads, uint32_t shards);

}  // namespace pando

#endif  // PANDO_SERVICE_OPTIONS_MODEL_CONFIG_H_
