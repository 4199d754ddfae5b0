#ifndef PANDO_CORE_EVICTION_QUOTA_CLASSES_H_
#define PANDO_CORE_EVICTION_QUOTA_CLASSES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/requests/namespace_key.h"

namespace pando {

// A quota class as configured: which namespaces it contains, and how many pages
// these may have together.
struct QuotaClass {
  std::string name;
  // Matches extra_key, as a shell matches file names: "tenant-a/*".
  std::string pattern;
  // Evictions for other classes leave it so many cached pages.
  uint32_t floor_pages = 0;
  std::optional<uint32_t> cap_pages = {};  // most cached and reserved pages
  // The longest retention that its inserts may ask for.
  uint16_t max_retention_seconds = 0;

  friend bool operator==(const QuotaClass&, const QuotaClass&) = default;
};

// The part of a class that may be changed while the cache is in use.
struct PageLimits {
  uint32_t floor_pages = 0;
  std::optional<uint32_t> cap_pages = {};
  uint16_t max_retention_seconds = 0;
};

// The quota classes: the configured ones, and behind them one for all other
// namespaces. It tells which class a namespace is in. Immutable; PageBudget has
// the limits that are valid now.
class QuotaClasses {
 public:
  explicit QuotaClasses(std::vector<QuotaClass> configured);

  uint32_t count() const { return static_cast<uint32_t>(classes_.size()); }
  bool are_configured() const { return count() > 1; }
  const std::string& name(uint32_t index) const { return classes_[index].name; }
  // The index of the first class whose pattern matches, or of the last class.
  // An unset extra_key matches like an empty one.
  uint32_t ClassOf(const NamespaceKey& key) const;

 private:
  std::vector<QuotaClass> classes_;
};

}  // namespace pando

#endif  // PANDO_CORE_EVICTION_QUOTA_CLASSES_H_
