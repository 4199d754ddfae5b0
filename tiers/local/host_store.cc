#include "tiers/local/host_store.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <limits>

#include "absl/memory/memory.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "os/memory_limit.h"

namespace pando {
namespace {

constexpr uint64_t kCacheLineBytes = 64;

// Without this check the system would grant any size now, and kill the process
// later.
absl::Status CheckFitsInMemory(uint64_t max_bytes) {
  ASSIGN_OR_RETURN(const uint64_t limit, MemoryLimit());
  if (max_bytes <= limit) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrFormat(
      "tier-host-bytes is %u; pandod may use %u bytes of memory", max_bytes,
      limit));
}

uint64_t SlotBytes(uint64_t block_bytes) {
  return (block_bytes + kCacheLineBytes - 1) / kCacheLineBytes *
         kCacheLineBytes;
}

}  // namespace

absl::StatusOr<uint64_t> HostStore::BytesOf(uint64_t max_bytes,
                                            uint64_t block_bytes) {
  const uint64_t slot_bytes = SlotBytes(block_bytes);
  if (max_bytes < slot_bytes) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "tier-host-bytes is %u; must be at least %u, for one page", max_bytes,
        slot_bytes));
  }
  RETURN_IF_ERROR(CheckFitsInMemory(max_bytes));
  const uint64_t slots = std::min<uint64_t>(
      max_bytes / slot_bytes, std::numeric_limits<uint32_t>::max());
  return slots * slot_bytes;
}

absl::StatusOr<std::unique_ptr<HostStore>> HostStore::Make(
    uint64_t max_bytes, uint64_t block_bytes) {
  ASSIGN_OR_RETURN(const uint64_t bytes, BytesOf(max_bytes, block_bytes));
  void* const base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) {
    return absl::ErrnoToStatus(
        errno,
        absl::StrFormat("tier-host-bytes: take %u bytes of memory", bytes));
  }
  auto store = absl::WrapUnique(new HostStore(
      {static_cast<std::byte*>(base), bytes}, block_bytes, /*owns=*/true));
  if (madvise(base, bytes, MADV_DONTDUMP) != 0) {
    return absl::ErrnoToStatus(
        errno, "tier-host-bytes: leave the memory out of core dumps");
  }
  return store;
}

std::unique_ptr<HostStore> HostStore::MakeIn(std::span<std::byte> memory,
                                             uint64_t block_bytes) {
  return absl::WrapUnique(new HostStore(memory, block_bytes, /*owns=*/false));
}

HostStore::HostStore(std::span<std::byte> memory, uint64_t block_bytes,
                     bool owns)
    : memory_(memory),
      slot_bytes_(SlotBytes(block_bytes)),
      owns_memory_(owns) {}

HostStore::~HostStore() {
  if (owns_memory_) munmap(memory_.data(), memory_.size());
}

}  // namespace pando
