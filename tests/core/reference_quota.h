#ifndef PANDO_TESTS_CORE_REFERENCE_QUOTA_H_
#define PANDO_TESTS_CORE_REFERENCE_QUOTA_H_

#include <cstdint>
#include <vector>

#include "core/eviction/quota_classes.h"
#include "core/requests/namespace_key.h"

namespace pando {

// Finds the quota class of each namespace. A pattern here is a text, optionally
// with `*` at its end.
class ReferenceQuota {
 public:
  explicit ReferenceQuota(std::vector<QuotaClass> classes);

  size_t ClassOf(const NamespaceKey& ns) const;
  // The configured classes, followed by the class of all other namespaces.
  const std::vector<QuotaClass>& classes() const { return classes_; }

 private:
  std::vector<QuotaClass> classes_;
};

}  // namespace pando

#endif  // PANDO_TESTS_CORE_REFERENCE_QUOTA_H_
