#ifndef PANDO_TESTS_CORE_PROGRAM_NAMESPACES_H_
#define PANDO_TESTS_CORE_PROGRAM_NAMESPACES_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "core/requests/namespace_key.h"
#include "tests/core/operations.h"

namespace pando::program {

// Returns the namespace that programs name by `number`.
inline const NamespaceKey& NamespaceOf(uint8_t number) {
  static const std::array<NamespaceKey, kNamespaces> keys = {
      NamespaceKey{},
      NamespaceKey{"", std::nullopt},
      NamespaceKey{"bc", "a"},
      NamespaceKey{std::string("\0bc", 3), "ab"},
      NamespaceKey{std::nullopt, std::nullopt, true},
      NamespaceKey{"bc", std::nullopt, true}};
  return keys[number % kNamespaces];
}

}  // namespace pando::program

#endif  // PANDO_TESTS_CORE_PROGRAM_NAMESPACES_H_
