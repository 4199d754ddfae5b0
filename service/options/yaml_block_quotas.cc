#include "service/options/yaml_block_quotas.h"

#include <optional>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "service/options/option_kinds.h"
#include "service/options/yaml_entry.h"

namespace pando {
namespace {

// Each is a series of a metric, and each kind that is made is compared with
// them.
constexpr size_t kMostQuotas = 16;

const std::vector<std::string>& BlockQuotaKeys() {
  static const auto* const keys =
      new std::vector<std::string>{"name", "label", "floor", "cap"};
  return *keys;
}

uint64_t SizeOf(const YAML::Node& value, const std::string& where,
                const std::string& key) {
  const std::string text = value.IsScalar() ? value.Scalar() : "";
  const std::optional<uint64_t> bytes = option::ParseSize(text);
  if (!bytes.has_value()) {
    FailInConfig(value,
                 absl::StrFormat("%s: %s is '%s'; must be a size such as "
                                 "512MiB or 2GiB",
                                 where, key, text));
  }
  return *bytes;
}

BlockQuota ReadBlockQuota(const YAML::Node& entry, const std::string& where) {
  BlockQuota quota;
  const auto fields = ReadEntry(entry, where, BlockQuotaKeys());
  for (const std::string key : {"name", "label"}) {
    if (fields.find(key) == fields.end()) {
      FailInConfig(entry, absl::StrFormat("%s: %s is missing", where, key));
    }
  }
  for (const auto& [key, value] : fields) {
    if (key == "floor") {
      quota.floor_bytes = SizeOf(value, where, key);
    } else if (key == "cap") {
      quota.cap_bytes = SizeOf(value, where, key);
    } else {
      (key == "name" ? quota.name : quota.label) = ReadText(value, where, key);
    }
  }
  if (quota.floor_bytes > quota.cap_bytes.value_or(quota.floor_bytes)) {
    FailInConfig(entry, absl::StrFormat(
                            "%s: floor is %u; must be at most cap, which is %u",
                            where, quota.floor_bytes, *quota.cap_bytes));
  }
  return quota;
}

}  // namespace

std::vector<BlockQuota> ReadBlockQuotas(const YAML::Node& list) {
  std::vector<BlockQuota> quotas;
  if (list.IsNull()) return quotas;
  if (!list.IsSequence()) {
    FailInConfig(list, "block_quotas must be a list of maps of " +
                           absl::StrJoin(BlockQuotaKeys(), ", "));
  }
  absl::flat_hash_set<std::string> names;
  for (const YAML::Node& entry : list) {
    const std::string where =
        absl::StrFormat("block_quotas[%u]", quotas.size());
    if (quotas.size() == kMostQuotas) {
      FailInConfig(entry, absl::StrFormat("%s: there may be at most %u", where,
                                          kMostQuotas));
    }
    quotas.push_back(ReadBlockQuota(entry, where));
    const std::string& name = quotas.back().name;
    if (!names.insert(name).second) {
      FailInConfig(entry, absl::StrFormat("%s: name is '%s', as of another one",
                                          where, name));
    }
  }
  return quotas;
}

}  // namespace pando
