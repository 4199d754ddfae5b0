#include "core/reuse/shadow_lru.h"

#include <algorithm>

namespace pando {
namespace {

// The debt is at most kDebtOfGain times what was gained, and what may be lost:
// a share of the capacity, and of all that was asked for.
constexpr double kDebtOfGain = 8;
constexpr double kLossOfCapacity = 0.05;
constexpr double kLossOfRequests = 0.003;

}  // namespace

uint32_t ShadowLru::PagesOf(RunLink link, uint32_t pages) const {
  if (!history_->At(link).is_in_shadow) return 0;
  return link == boundary_ ? boundary_pages_ : pages;
}

void ShadowLru::Appended(RunLink link) {
  history_->At(link).is_in_shadow = true;
  pages_ += history_->PagesOf(link);
  if (boundary_ == kNoRun) SetBoundary(link);
  while (pages_ > capacity_) {
    const auto over = static_cast<uint32_t>(
        std::min<uint64_t>(pages_ - capacity_, boundary_pages_));
    CountOut(boundary_, over);
    boundary_pages_ -= over;
    if (boundary_pages_ > 0) return;
    Run& out = history_->At(boundary_);
    out.is_in_shadow = false;
    SetBoundary(out.newer);
  }
}

void ShadowLru::Leaves(RunLink link, uint32_t pages) {
  Run& run = history_->At(link);
  CountOut(link, PagesOf(link, pages));
  if (link == boundary_) SetBoundary(run.newer);
  run.is_in_shadow = false;
}

// LRU, too, would trim a run from its tail.
void ShadowLru::Divided(RunLink front, uint32_t front_pages, RunLink tail,
                        bool was_evicted) {
  if (boundary_ == front || boundary_ == tail) {
    const bool is_tail_in = boundary_pages_ > front_pages;
    history_->At(tail).is_in_shadow = is_tail_in;
    boundary_ = is_tail_in ? tail : front;
    if (is_tail_in) boundary_pages_ -= front_pages;
  }
  if (was_evicted) debt_ += PagesOf(tail, history_->PagesOf(tail));
}

void ShadowLru::Shrinks(RunLink link, uint32_t kept) {
  const uint32_t pages = PagesOf(link, history_->PagesOf(link));
  if (pages <= kept) return;
  CountOut(link, pages - kept);
  if (link == boundary_) boundary_pages_ = kept;
}

void ShadowLru::CountUse(RunLink link, uint32_t pages) {
  const uint32_t in_shadow = PagesOf(link, pages);
  const uint32_t in_cache = IsGhost(link) ? 0 : pages;
  hits_ += in_shadow;
  hits_of_cache_ += in_cache;
  gain_ += int64_t{in_cache} - in_shadow;
  gain_ = std::min<int64_t>(gain_, capacity_);
}

bool ShadowLru::MustFollow() const {
  return static_cast<double>(debt_) >= debt_limit();
}

double ShadowLru::debt_limit() const {
  const double may_lose = static_cast<double>(gain_) +
                          kLossOfCapacity * capacity_ +
                          kLossOfRequests * static_cast<double>(requested_);
  return kDebtOfGain * std::max(0.0, may_lose);
}

void ShadowLru::CountOut(RunLink link, uint32_t pages) {
  pages_ -= pages;
  if (IsGhost(link)) debt_ -= pages;
}

void ShadowLru::SetBoundary(RunLink link) {
  boundary_ = link;
  boundary_pages_ = link == kNoRun ? 0 : history_->PagesOf(link);
}

}  // namespace pando
