#ifndef PANDO_TESTS_CORE_ENVIRONMENT_H_
#define PANDO_TESTS_CORE_ENVIRONMENT_H_

#include <cstdint>
#include <cstdlib>

namespace pando {

// Returns the number in an environment variable, or `otherwise` if the variable
// is not set.
inline uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::strtoull(value, nullptr, 10);
}

}  // namespace pando

#endif  // PANDO_TESTS_CORE_ENVIRONMENT_H_
