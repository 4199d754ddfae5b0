#ifndef PANDO_CORE_REUSE_GHOST_RUNS_H_
#define PANDO_CORE_REUSE_GHOST_RUNS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "core/nodes/segment.h"
#include "core/reuse/run.h"

namespace pando {

// The ghosts: runs of pages that were evicted. If their pages are inserted
// again, ReuseLearner knows from here how often and when they were used. A
// ghost is found by the print of its first page. It has the prints of its other
// pages, too, which tell page by page how much of it comes back. Two prefixes
// with the same print are mistaken for one.
//
// There are at most kMaxGhosts ghosts. Together they have at most kMaxPages
// pages, and at most 16 times the pages of the cache. The ghost that was
// evicted first is forgotten first. Owned by ReuseLearner; not thread-safe.
class GhostRuns {
 public:
  static constexpr uint32_t kMaxGhosts = 65'536;
  static constexpr uint32_t kMaxPages = 1 << 22;

  explicit GhostRuns(uint32_t capacity_pages);
  GhostRuns(const GhostRuns&) = delete;
  GhostRuns& operator=(const GhostRuns&) = delete;

  // Returns the slot of the ghost that begins with this page. A ghost is named
  // by its slot.
  std::optional<uint32_t> Find(PagePrint first_page) const;
  Run& run(uint32_t slot) { return ghosts_[slot].run; }
  uint32_t pages(uint32_t slot) const { return ghosts_[slot].run.pages; }
  PagePrint print(uint32_t slot, uint32_t page) const {
    return prints_[(ghosts_[slot].first_print + page) % max_pages_];
  }
  // How many of the ghost's first pages are the same as those of `prints`.
  uint32_t CommonPages(uint32_t slot, std::span<const PagePrint> prints) const;

  // Returns the ghost that must be removed next to make room for one with
  // `pages` pages; none if there is room. Ghosts are in a ring, so a removed
  // ghost still takes room until all older ones are gone.
  std::optional<uint32_t> InTheWay(uint32_t pages) const;
  // Adds a ghost and returns its slot. `run` is that of the node whose pages it
  // was. REQUIRES: InTheWay returned none, and no ghost begins with the first
  // page.
  uint32_t Add(std::span<const PagePrint> prints, const Run& run);
  // Takes the first `pages` pages off a ghost. REQUIRES: it has more pages, and
  // no other ghost begins with the first page that is left.
  void CutFront(uint32_t slot, uint32_t pages);
  void Remove(uint32_t slot);

  uint32_t count() const { return static_cast<uint32_t>(slots_.size()); }

 private:
  struct Ghost {
    Run run;               // has no pages if the slot is empty
    uint64_t first_print;  // counts all prints ever added
  };

  void AddPrints(std::span<const PagePrint> prints);

  const uint64_t max_pages_;
  const uint32_t max_ghosts_;
  std::vector<Ghost> ghosts_;  // a ring of slots
  uint32_t oldest_ = 0;        // the oldest slot in use, unless all are empty
  uint32_t used_ = 0;          // slots from the oldest on, empty ones included
  std::vector<PagePrint> prints_;  // a ring, too
  uint64_t next_print_ = 0;
  absl::flat_hash_map<PagePrint, uint32_t> slots_;
};

}  // namespace pando

#endif  // PANDO_CORE_REUSE_GHOST_RUNS_H_
