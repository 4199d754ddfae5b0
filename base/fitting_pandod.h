#ifndef PANDO_BASE_FITTING_PANDOD_H_
#define PANDO_BASE_FITTING_PANDOD_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/kv_layout.h"

namespace pando::kv {

struct PoolSize {
  uint64_t shard_bytes = 0;  // 0: the command has the word SIZE in its place
  size_t shards = 1;
  bool is_on_gpu = false;
};

// Returns the shell command that starts a pandod with a pool of `size`, whose
// pages have `shape` and contain the KV of `model`.
std::string FittingPandod(const Shape& shape, std::string_view model,
                          const PoolSize& size);

}  // namespace pando::kv

#endif  // PANDO_BASE_FITTING_PANDOD_H_
