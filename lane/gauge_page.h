// The gauge page: figures of the cache that every worker can read from memory,
// without a call. Each pandod has one, in a memfd that only pandod can write.
#ifndef PANDO_LANE_GAUGE_PAGE_H_
#define PANDO_LANE_GAUGE_PAGE_H_

#include <sched.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include "lane/layout.h"

namespace pando::lane {

// The figures on the page, all of one moment.
struct Gauges {
  // Names this run of pandod, each of which has another one. Where sessions
  // outlive pandod, it differs from their epoch.
  uint64_t epoch = 0;
  // Pages by state. Together with the padding page they sum to `capacity`.
  uint32_t free = 0;
  uint32_t evictable = 0;
  uint32_t protected_pages = 0;
  uint32_t reserved = 0;
  uint32_t quarantined = 0;
  uint32_t capacity = 0;
  uint32_t draining = 0;          // 1: pandod admits nothing new
  std::array<char, 20> policy{};  // the eviction policy's name, zero-padded

  friend bool operator==(const Gauges&, const Gauges&) = default;
};
static_assert(sizeof(Gauges) == 56);

inline constexpr uint32_t kGaugeMagic = 0x47444e50;  // "PNDG"
inline constexpr size_t kGaugePageBytes = 4096;

// The page in memory: the figures, guarded by a sequence lock. `sequence` is
// odd while pandod writes them.
struct GaugePage {
  static constexpr size_t kWords = sizeof(Gauges) / sizeof(uint32_t);

  SharedWord magic;
  SharedWord version;
  SharedWord sequence;
  SharedWord unused;
  std::array<SharedWord, kWords> words;  // Gauges
};
static_assert(offsetof(GaugePage, words) == 16);
static_assert(sizeof(GaugePage) <= kGaugePageBytes);

// Publishes new figures. REQUIRES: there is one writer at a time.
inline void WriteGauges(const Gauges& gauges, GaugePage& page) {
  const auto words =
      std::bit_cast<std::array<uint32_t, GaugePage::kWords>>(gauges);
  const uint32_t sequence = page.sequence.load(std::memory_order_relaxed);
  page.sequence.store(sequence + 1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  for (size_t i = 0; i < words.size(); ++i) {
    page.words[i].store(words[i], std::memory_order_relaxed);
  }
  page.sequence.store(sequence + 2, std::memory_order_release);
}

// Reads the figures. Returns none if the page was being written at each
// attempt, which means that pandod was killed while it wrote.
inline std::optional<Gauges> ReadGauges(const GaugePage& page) {
  constexpr int kAttempts = 1000;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const uint32_t before = page.sequence.load(std::memory_order_acquire);
    if (before % 2 != 0) {
      sched_yield();  // the writer may need this CPU to go on
      continue;
    }
    std::array<uint32_t, GaugePage::kWords> words;
    for (size_t i = 0; i < words.size(); ++i) {
      words[i] = page.words[i].load(std::memory_order_relaxed);
    }
    std::atomic_thread_fence(std::memory_order_acquire);
    if (page.sequence.load(std::memory_order_relaxed) != before) continue;
    return std::bit_cast<Gauges>(words);
  }
  return std::nullopt;
}

// The name of the policy. This is safe whatever the page contains.
inline std::string_view PolicyOf(const Gauges& gauges) {
  return {gauges.policy.data(),
          strnlen(gauges.policy.data(), gauges.policy.size())};
}

}  // namespace pando::lane

#endif  // PANDO_LANE_GAUGE_PAGE_H_
