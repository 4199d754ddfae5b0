#ifndef PANDO_BASE_EVICTION_POLICIES_H_
#define PANDO_BASE_EVICTION_POLICIES_H_

#include <array>
#include <string_view>

namespace pando {

// The names of the eviction policies, for programs that do not link the core.
// They have the order of EvictionPolicyKind in core; options_test compares
// them.
inline constexpr auto kEvictionPolicyNames = std::to_array<std::string_view>(
    {"lru", "lfu", "fifo", "mru", "filo", "priority", "slru", "reuse"});

}  // namespace pando

#endif  // PANDO_BASE_EVICTION_POLICIES_H_
