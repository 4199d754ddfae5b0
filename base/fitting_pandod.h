#ifndef PANDO_BASE_FITTING_PANDOD_H_
#define PANDO_BASE_FITTING_PANDOD_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/kv_layout.h"

namespace pando::kv {

struct PoolSize {
  uint64_t shard_bytes = 0;  // 0: the operator is to choose it
  size_t shards = 1;
  bool is_on_gpu = false;
};

// The command, as a shell reads it, of a pandod whose pool is of that size and
// has pages of `shape` with the KV of `model`.
std::string FittingPandod(const Shape& shape, std::string_view model,
                          const PoolSize& size);

}  // namespace pando::kv

#endif  // PANDO_BASE_FITTING_PANDOD_H_
