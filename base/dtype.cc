#include "base/dtype.h"

#include <array>
#include <cstddef>

#include "absl/strings/str_format.h"

namespace pando::kv {
namespace {

struct DTypeInfo {
  DType dtype;
  std::string_view name;
  uint32_t size;
};

// In the order of the enum.
constexpr std::array<DTypeInfo, 6> kDTypes = {{
    {DType::kFloat32, "float32", 4},
    {DType::kFloat16, "float16", 2},
    {DType::kBFloat16, "bfloat16", 2},
    {DType::kFloat8E4M3, "float8_e4m3", 1},
    {DType::kFloat8E5M2, "float8_e5m2", 1},
    {DType::kOpaque, "opaque", 1},
}};

const DTypeInfo& Info(DType dtype) {
  return kDTypes[static_cast<size_t>(dtype)];
}

}  // namespace

uint32_t DTypeSize(DType dtype) { return Info(dtype).size; }

std::string_view DTypeName(DType dtype) { return Info(dtype).name; }

absl::StatusOr<DType> ParseDType(std::string_view name) {
  for (const DTypeInfo& info : kDTypes) {
    if (info.name == name && info.dtype != DType::kOpaque) return info.dtype;
  }
  return absl::InvalidArgumentError(
      absl::StrFormat("dtype is '%s'; must be one of float32, float16, "
                      "bfloat16, float8_e4m3, float8_e5m2",
                      name));
}

}  // namespace pando::kv
