#ifndef PANDO_CORE_REUSE_GHOST_RUNS_H_
#define PANDO_CORE_REUSE_GHOST_RUNS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/nodes/run.h"
#include "core/nodes/segment.h"

namespace pando {

// Runs of pages that were evicted, so that it is known how often and when their
// pages were used should these come back. A ghost is found by the print of its
// first page, and knows those of the others: so it is known page by page how
// much of it comes back. Two prefixes of one print are taken for one.
//
// At most kMaxGhosts of at most 16 times the pages of the cache, and of
// kMaxPages: what was evicted first is forgotten first. Owned by ReuseLearner;
// not thread-safe.
class GhostRuns {
 public:
  static constexpr uint32_t kMaxGhosts = 65'536;
  static constexpr uint32_t kMaxPages = 1 << 22;

  explicit GhostRuns(uint32_t capacity_pages);
  GhostRuns(const GhostRuns&) = delete;
  GhostRuns& operator=(const GhostRuns&) = delete;

  // A ghost is named by its slot.
  std::optional<uint32_t> Find(PagePrint first_page) const;
  Run& run(uint32_t slot) { return ghosts_[slot].run; }
  uint32_t pages(uint32_t slot) const { return ghosts_[slot].pages; }
  PagePrint print(uint32_t slot, uint32_t page) const {
    return prints_[(ghosts_[slot].first_print + page) % max_pages_];
  }
  // How many of its first pages are those of `prints`.
  uint32_t CommonPages(uint32_t slot, std::span<const PagePrint> prints) const;

  // The ghost that has to be removed first for one with so many pages; none
  // when there is room. A ghost takes room until all before it are gone.
  std::optional<uint32_t> InTheWay(uint32_t pages) const;
  // REQUIRES: nothing is in the way, and no ghost begins with this page.
  uint32_t Add(std::span<const PagePrint> prints, const Run& run);
  // It loses its first `pages`. REQUIRES: it has more, and no other ghost
  // begins with the first that is left.
  void CutFront(uint32_t slot, uint32_t pages);
  void Remove(uint32_t slot);

  uint32_t count() const { return static_cast<uint32_t>(slots_.size()); }

 private:
  struct Ghost {
    Run run;
    uint64_t first_print;  // counts all that were ever added
    uint32_t pages;        // 0: the slot is empty
  };

  const uint64_t max_pages_;
  const uint32_t max_ghosts_;
  std::vector<Ghost> ghosts_;  // a ring of slots
  uint32_t oldest_ = 0;        // of the ring; it is in use unless all are empty
  uint32_t used_ = 0;          // slots from the oldest on, empty ones too
  std::vector<PagePrint> prints_;  // a ring, too
  uint64_t next_print_ = 0;
  absl::flat_hash_map<PagePrint, uint32_t> slots_;
};

}  // namespace pando

#endif  // PANDO_CORE_REUSE_GHOST_RUNS_H_
