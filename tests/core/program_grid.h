#ifndef PANDO_TESTS_CORE_PROGRAM_GRID_H_
#define PANDO_TESTS_CORE_PROGRAM_GRID_H_

#include <array>
#include <cstdint>
#include <ostream>

#include "core/eviction/eviction_policy.h"
#include "core/prefix_cache.h"
#include "tests/core/random_operations.h"

namespace pando::program {

inline constexpr std::array kPolicies = {
    EvictionPolicyKind::kLru,  EvictionPolicyKind::kLfu,
    EvictionPolicyKind::kFifo, EvictionPolicyKind::kMru,
    EvictionPolicyKind::kFilo, EvictionPolicyKind::kPriority,
    EvictionPolicyKind::kSlru, EvictionPolicyKind::kReuse};
inline constexpr std::array<uint32_t, 4> kPageSizes = {1, 4, 16, 64};

// A configuration of the cache and a mix of operations for a program.
struct GridPoint {
  EvictionPolicyKind policy;
  uint32_t page_tokens;
  bool is_bigram;  // whether most prompts are in a bigram namespace
  bool has_quotas;
  uint32_t capacity_pages;
  bool has_limits;  // whether a session's locks, pages and memory are limited
  bool learns_always;  // whether the cache learns for reuse under any policy
};
std::ostream& operator<<(std::ostream& out, const GridPoint& point);

GridPoint AnyGridPoint(const Choices& choices);
PrefixCache::Options OptionsAt(const GridPoint& point);
RandomOperations OperationsAt(const GridPoint& point, Choices choices);

}  // namespace pando::program

#endif  // PANDO_TESTS_CORE_PROGRAM_GRID_H_
