#ifndef PANDO_CORE_JOURNAL_MEASUREMENTS_H_
#define PANDO_CORE_JOURNAL_MEASUREMENTS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/histogram.h"
#include "core/eviction/eviction_policy.h"
#include "core/requests/eviction_reason.h"

namespace pando {

// The operations whose time is measured.
enum class Operation {
  kMatch,
  kScore,
  kInsert,
  kLock,
  kUnlock,
  kAllocate,
  kFree,
  kEvict,  // a step of PrefixCache::Evict
};
inline constexpr size_t kOperations = 8;

// How a lock ended.
enum class LockEnd {
  kUnlocked,
  kSessionClosed,
  kSessionLost,
  kOperator,  // PrefixCache::ReleaseLocks
};
inline constexpr size_t kLockEnds = 4;

// Why pages could not be reserved.
enum class AllocationFailure {
  kExhausted,  // too few pages are free or evictable
  kTooLarge,   // more pages than the pool has
  kQuota,      // over the cap of the class
};
inline constexpr size_t kAllocationFailures = 3;

// Upper bounds of buckets, in seconds.
inline constexpr auto kOperationSeconds =
    std::to_array({1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3,
                   2e-3, 5e-3, 1e-2, 5e-2, 1e-1, 1.0});
// Upper bounds of buckets for ages, in seconds. Ages are measured in tenths of
// a second.
inline constexpr auto kAgeSeconds =
    std::to_array<double>({.1, .5, 1, 5, 10, 30, 60, 120, 300, 600, 1800, 3600,
                           7200, 14400, 43200, 86400});
inline constexpr auto kHoldSeconds =
    std::to_array<double>({.1, .5, 1, 5, 10, 30, 60, 120, 300, 600, 1800});

// An array indexed by the values of an enum.
template <typename Enum, typename T, size_t kCount>
struct EnumArray : std::array<T, kCount> {
  using std::array<T, kCount>::operator[];
  T& operator[](Enum value) { return (*this)[static_cast<size_t>(value)]; }
  const T& operator[](Enum value) const {
    return (*this)[static_cast<size_t>(value)];
  }
};

// The matches of the namespaces of one quota class.
struct ClassTraffic {
  uint64_t query_tokens = 0;
  uint64_t hit_tokens = 0;
  // The part of hit_tokens that came from a tier and was hit for the first
  // time.
  uint64_t loaded_hit_tokens = 0;
  // Matches that found all pages of their prompt, some of them, or none.
  uint64_t full_matches = 0;
  uint64_t partial_matches = 0;
  uint64_t missed_matches = 0;
  uint64_t quota_rejections = 0;
};

// Figures for operators, in more detail than CacheCounters. Plain data, owned
// by CacheJournal. Counting takes some nanoseconds; copying all of it for a
// scrape takes less than a microsecond.
struct Measurements {
  // These stay empty when the cache was given no clock.
  EnumArray<Operation, Histogram<kOperationSeconds>, kOperations>
      operation_seconds;
  Histogram<kOperationSeconds> lock_wait_seconds;

  std::vector<ClassTraffic> classes;  // by quota class

  uint64_t allocations = 0;                 // successful ones
  uint64_t allocations_after_eviction = 0;  // those of them that evicted
  EnumArray<AllocationFailure, uint64_t, kAllocationFailures>
      failed_allocations{};

  EnumArray<EvictionReason,
            EnumArray<EvictionPolicyKind, uint64_t, kEvictionPolicies>,
            kEvictionReasons>
      evicted_pages{};
  // The part of evicted_pages whose last insert said that they would not be
  // used again; flushed pages do not count here.
  uint64_t evicted_ended_pages = 0;
  // For each evicted page, how long it was cached, and how long ago it was last
  // used.
  EnumArray<EvictionReason, Histogram<kAgeSeconds>, kEvictionReasons>
      evicted_page_age_seconds;
  EnumArray<EvictionReason, Histogram<kAgeSeconds>, kEvictionReasons>
      evicted_page_idle_seconds;
  // For each page that a match used: the time since its last use.
  Histogram<kAgeSeconds> reuse_gap_seconds;

  Histogram<kHoldSeconds> lock_hold_seconds;
  EnumArray<LockEnd, uint64_t, kLockEnds> ended_locks{};
};

}  // namespace pando

#endif  // PANDO_CORE_JOURNAL_MEASUREMENTS_H_
