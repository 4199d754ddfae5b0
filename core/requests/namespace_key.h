#ifndef PANDO_CORE_REQUESTS_NAMESPACE_KEY_H_
#define PANDO_CORE_REQUESTS_NAMESPACE_KEY_H_

#include <cstddef>
#include <optional>
#include <string>
#include <utility>

namespace pando {

// Callers must check this.
inline constexpr size_t kMaxNamespaceFieldBytes = 256;

// Names a namespace. The fields are compared one by one, and an unset field
// differs from an empty one.
struct NamespaceKey {
  std::optional<std::string> extra_key;
  std::optional<std::string> cache_salt;
  // Compares pairs of neighbouring tokens; see proto/pando/v1/types.proto.
  bool bigram = false;

  friend bool operator==(const NamespaceKey&, const NamespaceKey&) = default;

  template <typename H>
  friend H AbslHashValue(H state, const NamespaceKey& key) {
    return H::combine(std::move(state), key.extra_key, key.cache_salt,
                      key.bigram);
  }
};

}  // namespace pando

#endif  // PANDO_CORE_REQUESTS_NAMESPACE_KEY_H_
