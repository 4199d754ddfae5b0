#ifndef PANDO_BASE_DTYPE_H_
#define PANDO_BASE_DTYPE_H_

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"

namespace pando::kv {

// Element type of the KV memory.
enum class DType {
  kFloat32,
  kFloat16,
  kBFloat16,
  kFloat8E4M3,
  kFloat8E5M2,
  kOpaque,  // bytes whose meaning only the workers know
};

// The bytes of one element.
uint32_t DTypeSize(DType dtype);
std::string_view DTypeName(DType dtype);
// The type with this name. Does not accept kOpaque, which operators do not
// choose by name.
absl::StatusOr<DType> ParseDType(std::string_view name);

}  // namespace pando::kv

#endif  // PANDO_BASE_DTYPE_H_
