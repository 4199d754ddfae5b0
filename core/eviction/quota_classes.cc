#include "core/eviction/quota_classes.h"

#include <fnmatch.h>

#include <algorithm>
#include <utility>

namespace pando {

QuotaClasses::QuotaClasses(std::vector<QuotaClass> configured)
    : classes_(std::move(configured)) {
  classes_.push_back({.name = "", .pattern = "*"});
}

uint32_t QuotaClasses::ClassOf(const NamespaceKey& key) const {
  // To fnmatch, a zero byte would be the end of the key. So it gets another
  // byte in its place, which only a wildcard matches.
  std::string extra_key = key.extra_key.value_or("");
  std::replace(extra_key.begin(), extra_key.end(), '\0', '\1');
  for (uint32_t i = 0; i + 1 < count(); ++i) {
    if (fnmatch(classes_[i].pattern.c_str(), extra_key.c_str(), 0) == 0) {
      return i;
    }
  }
  return count() - 1;
}

}  // namespace pando
