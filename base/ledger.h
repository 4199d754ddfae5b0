#ifndef PANDO_BASE_LEDGER_H_
#define PANDO_BASE_LEDGER_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>

#include "base/check.h"

namespace pando {

// A ledger contains plain facts, without pointers and without anything that can
// be computed from the rest. If its memory outlives the process, the next
// process builds its indexes from the ledger. There is one for blocks
// (BlockLedger) and one for pages (PageLedger).
//
// The process may die between any two stores. Therefore a fact that makes other
// facts valid is stored after them, and is cleared before they change.

// Parts of a ledger begin at multiples of this.
inline constexpr uint64_t kLedgerPage = 4'096;

constexpr uint64_t RoundUpToLedgerPage(uint64_t bytes) {
  return (bytes + kLedgerPage - 1) / kLedgerPage * kLedgerPage;
}

// The first bytes of each ledger.
struct LedgerStart {
  uint64_t magic;       // names the layout; 0: the ledger may not be taken over
  uint64_t recoveries;  // processes that have taken it over
  // How many processes in a row have started without serving, and how many
  // crashed soon after their start. From these, the owner of the memory decides
  // whether to use the ledger again (service/memory/kept_ledger.h).
  uint32_t starts;
  uint32_t crashes;
};

inline LedgerStart& StartOf(std::span<std::byte> ledger) {
  return *reinterpret_cast<LedgerStart*>(ledger.data());
}

// A barrier for the compiler: stores before this call happen before stores
// after it. Nothing more is needed, because the memory shows the next process
// all stores of a process that died.
inline void StoresBefore() {
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

// The FNV-1a hash of bytes, by which damage is noticed.
inline uint32_t CheckOfBytes(std::span<const std::byte> bytes, uint32_t seed) {
  uint32_t hash = 2'166'136'261 ^ seed;
  for (std::byte byte : bytes) {
    hash = (hash ^ static_cast<uint8_t>(byte)) * 16'777'619;
  }
  return hash;
}

// A text of limited length, which may be unset.
struct LedgerText {
  static constexpr size_t kMaxBytes = 256;

  // REQUIRES: the text has at most kMaxBytes bytes.
  static LedgerText Of(const std::optional<std::string>& text) {
    LedgerText out = {};
    if (!text.has_value()) return out;
    CHECK(text->size() <= kMaxBytes);
    out.is_set = 1;
    out.bytes = static_cast<uint16_t>(text->size());
    std::memcpy(out.data, text->data(), text->size());
    return out;
  }
  std::string text() const {
    return {data, std::min<size_t>(bytes, kMaxBytes)};
  }
  std::optional<std::string> optional() const {
    if (is_set == 0) return std::nullopt;
    return text();
  }

  uint16_t bytes;
  uint8_t is_set;
  char data[kMaxBytes];
};

}  // namespace pando

#endif  // PANDO_BASE_LEDGER_H_
