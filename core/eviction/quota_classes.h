#ifndef PANDO_CORE_EVICTION_QUOTA_CLASSES_H_
#define PANDO_CORE_EVICTION_QUOTA_CLASSES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/requests/namespace_key.h"

namespace pando {

// How many pages the namespaces of one class may have together.
struct QuotaClass {
  std::string name;
  std::string pattern;       // of extra_key, as for file names: "tenant-a/*"
  uint32_t floor_pages = 0;  // cached pages that others leave it
  std::optional<uint32_t> cap_pages = {};  // of cached and reserved pages
  // The longest that its inserts may ask to be retained.
  uint16_t max_retention_seconds = 0;

  friend bool operator==(const QuotaClass&, const QuotaClass&) = default;
};

// The part of a class that may be changed while the cache is in use.
struct PageLimits {
  uint32_t floor_pages = 0;
  std::optional<uint32_t> cap_pages = {};
  uint16_t max_retention_seconds = 0;
};

// The quota classes that are configured, then one for all other namespaces:
// which class a namespace is in. Immutable; PageBudget knows the limits as they
// are now.
class QuotaClasses {
 public:
  explicit QuotaClasses(std::vector<QuotaClass> configured);

  uint32_t count() const { return static_cast<uint32_t>(classes_.size()); }
  bool are_configured() const { return count() > 1; }
  const std::string& name(uint32_t index) const { return classes_[index].name; }
  // The first class whose pattern matches; an unset extra_key is like an empty
  // one here.
  uint32_t ClassOf(const NamespaceKey& key) const;

 private:
  std::vector<QuotaClass> classes_;
};

}  // namespace pando

#endif  // PANDO_CORE_EVICTION_QUOTA_CLASSES_H_
