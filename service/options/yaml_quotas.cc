#include "service/options/yaml_quotas.h"

#include <cstdint>
#include <limits>
#include <optional>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "service/options/yaml_entry.h"

namespace pando {
namespace {

const std::vector<std::string>& Keys() {
  static const auto* const keys =
      new std::vector<std::string>{"class", "extra_key", "floor_pages",
                                   "cap_pages", "max_retention_seconds"};
  return *keys;
}

template <typename T>
T NumberOf(const YAML::Node& value, const std::string& where,
           const std::string& key) {
  const std::string text = value.IsScalar() ? value.Scalar() : "";
  uint32_t number = 0;
  constexpr uint32_t kMost = std::numeric_limits<T>::max();
  if (!absl::SimpleAtoi(text, &number) || number > kMost) {
    FailInConfig(value, absl::StrFormat(
                            "%s: %s is '%s'; must be a whole number from 0 to "
                            "%u",
                            where, key, text, kMost));
  }
  return static_cast<T>(number);
}

void Store(const std::string& key, const YAML::Node& value,
           const std::string& where, QuotaClass& quota) {
  if (key == "floor_pages") {
    quota.floor_pages = NumberOf<uint32_t>(value, where, key);
  } else if (key == "cap_pages") {
    quota.cap_pages = NumberOf<uint32_t>(value, where, key);
  } else if (key == "max_retention_seconds") {
    quota.max_retention_seconds = NumberOf<uint16_t>(value, where, key);
  } else {
    (key == "class" ? quota.name : quota.pattern) = ReadText(value, where, key);
  }
}

QuotaClass ReadQuota(const YAML::Node& entry, const std::string& where) {
  QuotaClass quota;
  const auto fields = ReadEntry(entry, where, Keys());
  for (const auto& [key, value] : fields) Store(key, value, where, quota);
  for (const std::string key : {"class", "extra_key"}) {
    if (fields.find(key) == fields.end()) {
      FailInConfig(entry, absl::StrFormat("%s: %s is missing", where, key));
    }
  }
  if (quota.floor_pages > quota.cap_pages.value_or(quota.floor_pages)) {
    FailInConfig(entry,
                 absl::StrFormat("%s: floor_pages is %u; must be at most "
                                 "cap_pages, which is %u",
                                 where, quota.floor_pages, *quota.cap_pages));
  }
  return quota;
}

}  // namespace

std::vector<QuotaClass> ReadQuotas(const YAML::Node& list) {
  std::vector<QuotaClass> quotas;
  if (list.IsNull()) return quotas;
  if (!list.IsSequence()) {
    FailInConfig(list, "quotas must be a list of maps of " +
                           absl::StrJoin(Keys(), ", "));
  }
  absl::flat_hash_set<std::string> names;
  for (const YAML::Node& entry : list) {
    const std::string where = absl::StrFormat("quotas[%u]", quotas.size());
    quotas.push_back(ReadQuota(entry, where));
    const std::string& name = quotas.back().name;
    if (!names.insert(name).second) {
      FailInConfig(entry, absl::StrFormat("%s: class is '%s', as of another "
                                          "one",
                                          where, name));
    }
  }
  return quotas;
}

}  // namespace pando
