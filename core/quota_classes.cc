#include "core/quota_classes.h"

#include <fnmatch.h>

#include <utility>

namespace pando {

QuotaClasses::QuotaClasses(std::vector<QuotaClass> configured)
    : classes_(std::move(configured)) {
  classes_.push_back({.name = "", .pattern = "*"});
}

uint32_t QuotaClasses::ClassOf(const NamespaceKey& key) const {
  const char* const extra_key =
      key.extra_key.has_value() ? key.extra_key->c_str() : "";
  for (uint32_t i = 0; i + 1 < count(); ++i) {
    if (fnmatch(classes_[i].pattern.c_str(), extra_key, 0) == 0) {
      return i;
    }
  }
  return count() - 1;
}

}  // namespace pando
