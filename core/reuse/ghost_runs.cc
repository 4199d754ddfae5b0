#include "core/reuse/ghost_runs.h"

#include <algorithm>

namespace pando {
namespace {

constexpr uint64_t kPagesOfCache = 16;

}  // namespace

// All memory is allocated here, so that nothing has to grow while calls wait.
GhostRuns::GhostRuns(uint32_t capacity_pages)
    : max_pages_(std::min<uint64_t>(kPagesOfCache * capacity_pages, kMaxPages)),
      max_ghosts_(
          static_cast<uint32_t>(std::min<uint64_t>(kMaxGhosts, max_pages_))) {
  ghosts_.reserve(max_ghosts_);
  prints_.reserve(max_pages_);
  slots_.reserve(max_ghosts_);
}

std::optional<uint32_t> GhostRuns::Find(PagePrint first_page) const {
  const auto it = slots_.find(first_page);
  if (it == slots_.end()) return std::nullopt;
  return it->second;
}

uint32_t GhostRuns::CommonPages(uint32_t slot,
                                std::span<const PagePrint> prints) const {
  const auto most =
      static_cast<uint32_t>(std::min<size_t>(pages(slot), prints.size()));
  uint32_t common = 0;
  while (common < most) {
    const uint64_t place = (ghosts_[slot].first_print + common) % max_pages_;
    const auto own = std::span(prints_).subspan(
        place, std::min<uint64_t>(most - common, max_pages_ - place));
    const auto difference = std::ranges::mismatch(own, prints.subspan(common));
    common += static_cast<uint32_t>(difference.in1 - own.begin());
    if (difference.in1 != own.end()) break;
  }
  return common;
}

std::optional<uint32_t> GhostRuns::InTheWay(uint32_t pages) const {
  if (used_ == 0) return std::nullopt;
  const uint64_t used_prints = next_print_ - ghosts_[oldest_].first_print;
  const bool has_room =
      used_ < max_ghosts_ && used_prints + pages <= max_pages_;
  if (has_room) return std::nullopt;
  return oldest_;
}

uint32_t GhostRuns::Add(std::span<const PagePrint> prints, const Run& run) {
  const uint32_t slot = (oldest_ + used_++) % max_ghosts_;
  Ghost ghost{run, next_print_};
  ghost.run.pages = static_cast<uint32_t>(prints.size());
  ghost.run.is_listed = 0;
  if (slot == ghosts_.size()) {
    ghosts_.push_back(ghost);
  } else {
    ghosts_[slot] = ghost;
  }
  AddPrints(prints);
  slots_.emplace(prints.front(), slot);
  return slot;
}

void GhostRuns::AddPrints(std::span<const PagePrint> prints) {
  while (!prints.empty()) {
    const uint64_t place = next_print_ % max_pages_;
    const auto part =
        prints.first(std::min<uint64_t>(prints.size(), max_pages_ - place));
    if (place == prints_.size()) {
      prints_.insert(prints_.end(), part.begin(), part.end());
    } else {
      std::ranges::copy(part, prints_.begin() + static_cast<ptrdiff_t>(place));
    }
    next_print_ += part.size();
    prints = prints.subspan(part.size());
  }
}

void GhostRuns::CutFront(uint32_t slot, uint32_t pages) {
  Ghost& ghost = ghosts_[slot];
  slots_.erase(print(slot, 0));
  ghost.first_print += pages;
  ghost.run.pages -= pages;
  slots_.emplace(print(slot, 0), slot);
}

void GhostRuns::Remove(uint32_t slot) {
  slots_.erase(print(slot, 0));
  ghosts_[slot].run.pages = 0;
  while (used_ > 0 && ghosts_[oldest_].run.pages == 0) {
    oldest_ = (oldest_ + 1) % max_ghosts_;
    --used_;
  }
}

}  // namespace pando
