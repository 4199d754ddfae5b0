#ifndef PANDO_GPU_PAGE_CHECKSUMMER_H_
#define PANDO_GPU_PAGE_CHECKSUMMER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"

namespace pando {

// Computes checksums of a pool's pages where they lie. KvPool::MakeChecksummer
// makes it. It keeps the memory alive by itself. One thread at a time may use
// it.
class PageChecksummer {
 public:
  virtual ~PageChecksummer() = default;

  // Returns the checksum of each page over all shards; waits until they are
  // computed. REQUIRES: the ids are within the pool.
  virtual absl::StatusOr<std::vector<uint64_t>> Checksum(
      std::span<const uint32_t> pages) = 0;
};

// Combines a shard's checksum of a page with that of the shards before it.
inline uint64_t JoinShards(uint64_t before, uint64_t shard) {
  return before * 0x9e3779b97f4a7c15 + shard;
}

}  // namespace pando

#endif  // PANDO_GPU_PAGE_CHECKSUMMER_H_
