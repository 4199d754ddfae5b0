#include "core/eviction/quota_classes.h"

#include <utility>

#include "core/requests/name_pattern.h"

namespace pando {

QuotaClasses::QuotaClasses(std::vector<QuotaClass> configured)
    : classes_(std::move(configured)) {
  classes_.push_back({.name = "", .pattern = "*"});
}

uint32_t QuotaClasses::ClassOf(const NamespaceKey& key) const {
  const std::string extra_key = key.extra_key.value_or("");
  for (uint32_t i = 0; i + 1 < count(); ++i) {
    if (MatchesPattern(classes_[i].pattern, extra_key)) return i;
  }
  return count() - 1;
}

}  // namespace pando
