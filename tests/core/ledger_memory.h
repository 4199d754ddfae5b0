#ifndef PANDO_TESTS_CORE_LEDGER_MEMORY_H_
#define PANDO_TESTS_CORE_LEDGER_MEMORY_H_

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <list>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/check.h"
#include "core/nodes/page_ledger.h"
#include "core/prefix_cache.h"

namespace pando {

// Memory for a ledger of pages, which processes made by fork share.
class LedgerMemory {
 public:
  explicit LedgerMemory(const PrefixCache::Options& options)
      : pool_{.page_tokens = options.page_tokens,
              .capacity_pages = options.capacity_pages,
              .memory_id = kMemoryId},
        bytes_(PageLedger::BytesFor(pool_)) {
    Map();
  }
  LedgerMemory(const LedgerMemory&) = delete;
  LedgerMemory& operator=(const LedgerMemory&) = delete;
  ~LedgerMemory() {
    for (const Mapping& mapping : mappings_) {
      munmap(mapping.memory.data(), bytes_);
      close(mapping.fd);
    }
  }

  std::span<std::byte> memory() const { return mappings_.front().memory; }
  const PageLedger::Pool& pool() const { return pool_; }
  // A copy of the ledger as it is now, which this owns.
  std::span<std::byte> Copy() { return CopyOf(memory()); }
  // The same of such a copy.
  std::span<std::byte> CopyOf(std::span<std::byte> ledger) {
    int from = -1;
    for (const Mapping& mapping : mappings_) {
      if (mapping.memory.data() == ledger.data()) from = mapping.fd;
    }
    const std::span<std::byte> copy = Map();
    ForEachTouched(from, [&](size_t begin, size_t end) {
      std::memcpy(copy.data() + begin, ledger.data() + begin, end - begin);
    });
    return copy;
  }
  // Returns the offsets of the ledger's bytes that are not zero.
  std::vector<size_t> Used() const {
    std::vector<size_t> used;
    ForEachTouched(mappings_.front().fd, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        if (memory()[i] != std::byte{0}) used.push_back(i);
      }
    });
    return used;
  }

  // These options with the ledger in `memory`.
  static PrefixCache::Options With(PrefixCache::Options options,
                                   std::span<std::byte> memory,
                                   bool keeps_sessions = false) {
    options.ledger = memory;
    options.keeps_sessions = keeps_sessions;
    options.ledger_pool = kMemoryId;
    return options;
  }

 private:
  static constexpr uint64_t kMemoryId = 77;

  struct Mapping {
    int fd;
    std::span<std::byte> memory;
  };

  // Most of the memory was never touched.
  static void ForEachTouched(
      int fd, absl::FunctionRef<void(size_t begin, size_t end)> visit) {
    for (off_t at = lseek(fd, 0, SEEK_DATA); at >= 0;) {
      const off_t end = lseek(fd, at, SEEK_HOLE);
      visit(static_cast<size_t>(at), static_cast<size_t>(end));
      at = lseek(fd, end, SEEK_DATA);
    }
  }

  std::span<std::byte> Map() {
    const int fd = memfd_create("ledger", MFD_CLOEXEC);
    CHECK(ftruncate(fd, static_cast<off_t>(bytes_)) == 0);
    void* const memory =
        mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(memory != MAP_FAILED);
    mappings_.push_back({fd, {static_cast<std::byte*>(memory), bytes_}});
    return mappings_.back().memory;
  }

  const PageLedger::Pool pool_;
  const size_t bytes_;
  std::list<Mapping> mappings_;  // the ledger, then the copies
};

}  // namespace pando

#endif  // PANDO_TESTS_CORE_LEDGER_MEMORY_H_
