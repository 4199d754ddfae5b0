#ifndef PANDO_CORE_REUSE_GHOST_RUNS_H_
#define PANDO_CORE_REUSE_GHOST_RUNS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/nodes/run.h"

namespace pando {

// Runs of pages that were evicted, so that it is known how often and when their
// pages were used should these come back. A ghost is found by the hash of the
// prefix that ends with its first page. Two prefixes of one hash are taken for
// one.
//
// At most kMaxGhosts of at most 16 times the pages of the cache: what was
// evicted first is forgotten first. Owned by ReuseLearner; not thread-safe.
class GhostRuns {
 public:
  static constexpr uint32_t kMaxGhosts = 65'536;

  explicit GhostRuns(uint32_t capacity_pages);
  GhostRuns(const GhostRuns&) = delete;
  GhostRuns& operator=(const GhostRuns&) = delete;

  // A ghost is named by its slot.
  std::optional<uint32_t> Find(uint64_t first_page_hash) const;
  Run& run(uint32_t slot) { return ghosts_[slot].run; }
  uint32_t pages(uint32_t slot) const { return ghosts_[slot].pages; }

  // The ghost that has to be removed first for so many ghosts with so many
  // pages; none when there is room.
  std::optional<uint32_t> InTheWay(uint32_t ghosts, uint32_t pages) const;
  // REQUIRES: nothing is in the way, and no ghost has this hash.
  uint32_t Add(uint64_t first_page_hash, const Run& run, uint32_t pages);
  void Remove(uint32_t slot);

  uint32_t count() const { return static_cast<uint32_t>(slots_.size()); }
  uint64_t page_count() const { return pages_; }

 private:
  struct Ghost {
    Run run;
    uint64_t first_page_hash;
    uint32_t pages;  // 0: the slot is empty
  };

  const uint64_t max_pages_;
  const uint32_t max_ghosts_;
  std::vector<Ghost> ghosts_;  // a ring of slots
  uint32_t oldest_ = 0;        // of the ring; it is in use unless all are empty
  uint32_t used_ = 0;          // slots from the oldest on, empty ones too
  uint64_t pages_ = 0;
  absl::flat_hash_map<uint64_t, uint32_t> slots_;
};

}  // namespace pando

#endif  // PANDO_CORE_REUSE_GHOST_RUNS_H_
