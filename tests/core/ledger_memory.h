#ifndef PANDO_TESTS_CORE_LEDGER_MEMORY_H_
#define PANDO_TESTS_CORE_LEDGER_MEMORY_H_

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <list>
#include <span>

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
        bytes_(PageLedger::BytesFor(pool_)),
        fd_(memfd_create("ledger", MFD_CLOEXEC)) {
    CHECK(ftruncate(fd_, static_cast<off_t>(bytes_)) == 0);
    memory_ = Map(MAP_SHARED);
  }
  LedgerMemory(const LedgerMemory&) = delete;
  LedgerMemory& operator=(const LedgerMemory&) = delete;
  ~LedgerMemory() {
    for (std::span<std::byte> copy : copies_) munmap(copy.data(), bytes_);
    munmap(memory_.data(), bytes_);
    close(fd_);
  }

  std::span<std::byte> memory() const { return memory_; }
  const PageLedger::Pool& pool() const { return pool_; }
  // A copy of the ledger as it is now, which this owns.
  std::span<std::byte> Copy() {
    const std::span<std::byte> copy = Map(MAP_PRIVATE | MAP_ANONYMOUS);
    copies_.push_back(copy);
    // Most of the memory was never touched.
    for (off_t at = lseek(fd_, 0, SEEK_DATA); at >= 0;) {
      const off_t end = lseek(fd_, at, SEEK_HOLE);
      std::memcpy(copy.data() + at, memory_.data() + at,
                  static_cast<size_t>(end - at));
      at = lseek(fd_, end, SEEK_DATA);
    }
    return copy;
  }

  // The same of a copy.
  std::span<std::byte> CopyOf(std::span<const std::byte> ledger) {
    const std::span<std::byte> copy = Map(MAP_PRIVATE | MAP_ANONYMOUS);
    for (size_t at = 0; at < bytes_; at += kLedgerPage) {
      // Pages that are not touched take up no memory.
      if (std::memcmp(copy.data() + at, ledger.data() + at, kLedgerPage) != 0) {
        std::memcpy(copy.data() + at, ledger.data() + at, kLedgerPage);
      }
    }
    return copy;
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

  std::span<std::byte> Map(int flags) const {
    void* const memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, flags,
                              (flags & MAP_ANONYMOUS) != 0 ? -1 : fd_, 0);
    CHECK(memory != MAP_FAILED);
    return {static_cast<std::byte*>(memory), bytes_};
  }

  const PageLedger::Pool pool_;
  const size_t bytes_;
  const int fd_;
  std::span<std::byte> memory_;
  std::list<std::span<std::byte>> copies_;
};

}  // namespace pando

#endif  // PANDO_TESTS_CORE_LEDGER_MEMORY_H_
