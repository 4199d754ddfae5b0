#ifndef PANDO_REPLAY_ACCOUNTS_H_
#define PANDO_REPLAY_ACCOUNTS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace pando::replay {

// How many pages are in each state.
struct PagesByState {
  uint32_t free = 0;
  uint32_t reserved = 0;
  uint32_t evictable = 0;
  uint32_t protected_pages = 0;
  uint32_t quarantined = 0;
  uint32_t padding = 0;
  uint32_t capacity = 0;

  uint64_t Sum() const {
    return uint64_t{free} + reserved + evictable + protected_pages +
           quarantined + padding;
  }
};

// The cache's own figures. A replay compares those of its workers with them.
struct Accounts {
  // The eviction policy.
  std::string policy = {};
  uint64_t matches = 0;
  uint64_t hit_tokens = 0;
  uint64_t inserted_pages = 0;
  uint64_t evicted_pages = 0;
  uint64_t allocation_failures = 0;
  uint64_t locks = 0;
  PagesByState pages = {};
  std::vector<std::string> invariant_violations = {};
};

}  // namespace pando::replay

#endif  // PANDO_REPLAY_ACCOUNTS_H_
