#ifndef PANDO_SERVICE_OPTIONS_MODEL_CONFIG_H_
#define PANDO_SERVICE_OPTIONS_MODEL_CONFIG_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "gpu/kv_layout.h"

namespace pando {

// The shape of a model's KV, as its config.json says it.
struct ModelConfig {
  uint32_t layers = 0;
  // The KV heads of the whole model, not of one tensor-parallel rank.
  uint32_t kv_heads = 0;
  uint32_t head_size = 0;
  DType dtype = DType::kBFloat16;
};

// Reads FOLDER/config.json in the format of Hugging Face's models. An error
// names the file, and the field at fault.
absl::StatusOr<ModelConfig> ReadModelConfig(const std::string& folder);

// Returns the KV heads of one of `shards` tensor-parallel ranks. Engines give
// each rank at least one head, so with more ranks than heads some ranks have
// the same. Returns INVALID_ARGUMENT if the heads cannot be shared evenly.
absl::StatusOr<uint32_t> HeadsOfShard(uint32_t kv_heads, uint32_t shards);

}  // namespace pando

#endif  // PANDO_SERVICE_OPTIONS_MODEL_CONFIG_H_
