#include "core/eviction/eviction_policy.h"

#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/requests/errors.h"

namespace pando {
namespace {

// In the order of the enum.
constexpr std::array<const char*, kEvictionPolicies> kNames = {
    "lru", "lfu", "fifo", "mru", "filo", "priority", "slru", "reuse"};

}  // namespace

std::string_view EvictionPolicyName(EvictionPolicyKind kind) {
  return kNames[static_cast<size_t>(kind)];
}

absl::StatusOr<EvictionPolicyKind> ParseEvictionPolicy(std::string_view name) {
  const std::string wanted = absl::AsciiStrToLower(std::string(name));
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (wanted == kNames[i]) return static_cast<EvictionPolicyKind>(i);
  }
  return MakeError(Reason::kInvalidField,
                   absl::StrCat("eviction policy is '", std::string(name),
                                "'; it may be ", absl::StrJoin(kNames, ", ")));
}

}  // namespace pando
