#include "base/dtype.h"

#include <array>
#include <cstddef>
#include <string>
#include <utility>

#include "absl/strings/match.h"
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

// Other names, which engines and model files use.
constexpr std::pair<std::string_view, DType> kOtherWords[] = {
    {"bf16", DType::kBFloat16},       {"fp16", DType::kFloat16},
    {"half", DType::kFloat16},        {"fp32", DType::kFloat32},
    {"float", DType::kFloat32},       {"fp8", DType::kFloat8E4M3},
    {"fp8_e4m3", DType::kFloat8E4M3}, {"float8_e4m3fn", DType::kFloat8E4M3},
    {"fp8_e5m2", DType::kFloat8E5M2},
};

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
  std::string meant;
  for (const auto& [word, dtype] : kOtherWords) {
    if (absl::EqualsIgnoreCase(std::string(word), std::string(name))) {
      meant = absl::StrFormat("did you mean '%s'? It ", DTypeName(dtype));
    }
  }
  return absl::InvalidArgumentError(
      absl::StrFormat("dtype is '%s'; %smust be one of float32, float16, "
                      "bfloat16, float8_e4m3, float8_e5m2",
                      name, meant));
}

}  // namespace pando::kv
