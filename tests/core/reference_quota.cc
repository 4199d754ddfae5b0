#include "tests/core/reference_quota.h"

#include <string>
#include <utility>

namespace pando {
namespace {

bool Matches(const std::string& pattern, const std::string& text) {
  if (!pattern.ends_with('*')) return text == pattern;
  return text.starts_with(pattern.substr(0, pattern.size() - 1));
}

}  // namespace

ReferenceQuota::ReferenceQuota(std::vector<QuotaClass> classes)
    : classes_(std::move(classes)) {
  classes_.push_back({.name = "", .pattern = "*"});
}

size_t ReferenceQuota::ClassOf(const NamespaceKey& ns) const {
  size_t number = 0;
  while (!Matches(classes_[number].pattern, ns.extra_key.value_or(""))) {
    ++number;
  }
  return number;
}

}  // namespace pando
