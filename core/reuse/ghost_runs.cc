#include "core/reuse/ghost_runs.h"

#include <algorithm>

namespace pando {
namespace {

constexpr uint64_t kPagesOfCache = 16;

}  // namespace

// All memory is taken at once, so that nothing grows while calls wait.
GhostRuns::GhostRuns(uint32_t capacity_pages)
    : max_pages_(kPagesOfCache * capacity_pages),
      max_ghosts_(
          static_cast<uint32_t>(std::min<uint64_t>(kMaxGhosts, max_pages_))) {
  ghosts_.reserve(max_ghosts_);
  slots_.reserve(max_ghosts_);
}

std::optional<uint32_t> GhostRuns::Find(uint64_t first_page_hash) const {
  const auto it = slots_.find(first_page_hash);
  if (it == slots_.end()) return std::nullopt;
  return it->second;
}

std::optional<uint32_t> GhostRuns::InTheWay(uint32_t ghosts,
                                            uint32_t pages) const {
  const bool has_room =
      used_ + ghosts <= max_ghosts_ && pages_ + pages <= max_pages_;
  if (has_room || used_ == 0) return std::nullopt;
  return oldest_;
}

uint32_t GhostRuns::Add(uint64_t first_page_hash, const Run& run,
                        uint32_t pages) {
  const uint32_t slot = (oldest_ + used_++) % max_ghosts_;
  const Ghost ghost{run, first_page_hash, pages};
  if (slot == ghosts_.size()) {
    ghosts_.push_back(ghost);
  } else {
    ghosts_[slot] = ghost;
  }
  slots_.emplace(first_page_hash, slot);
  pages_ += pages;
  return slot;
}

void GhostRuns::Remove(uint32_t slot) {
  Ghost& ghost = ghosts_[slot];
  slots_.erase(ghost.first_page_hash);
  pages_ -= ghost.pages;
  ghost.pages = 0;
  while (used_ > 0 && ghosts_[oldest_].pages == 0) {
    oldest_ = (oldest_ + 1) % max_ghosts_;
    --used_;
  }
}

}  // namespace pando
