#include "core/reuse/shadow_lru.h"

#include <algorithm>

namespace pando {
namespace {

// The shadow allows to lose this share of all requested pages.
constexpr double kLossOfRequests = 0.0013;

}  // namespace

uint32_t ShadowLru::PagesOf(RunLink link, uint32_t pages) const {
  if (!history_->At(link).is_in_shadow) return 0;
  return link == boundary_ ? std::min(boundary_pages_, pages) : pages;
}

void ShadowLru::Appended(RunLink link,
                         absl::FunctionRef<void(RunLink)> evicted) {
  history_->At(link).is_in_shadow = true;
  pages_ += history_->At(link).pages;
  if (boundary_ == kNoRun) SetBoundary(link);
  while (pages_ > capacity_) {
    const auto over = static_cast<uint32_t>(
        std::min<uint64_t>(pages_ - capacity_, boundary_pages_));
    CountOut(boundary_, over);
    in_turn_ -= std::min<uint64_t>(in_turn_, over);
    boundary_pages_ -= over;
    if (boundary_pages_ > 0) return;
    const RunLink out = boundary_;
    history_->At(out).is_in_shadow = false;
    SetBoundary(history_->At(out).newer);
    evicted(out);
  }
}

void ShadowLru::Leaves(RunLink link, uint32_t pages) {
  Run& run = history_->At(link);
  CountOut(link, PagesOf(link, pages));
  if (link == boundary_) SetBoundary(run.newer);
  run.is_in_shadow = false;
}

void ShadowLru::FrontLeaves(RunLink ghost, uint32_t pages) {
  const uint32_t out = PagesOf(ghost, pages);
  CountOut(ghost, out);
  if (ghost != boundary_) return;
  boundary_pages_ -= out;
  if (boundary_pages_ > 0) return;
  Run& run = history_->At(ghost);
  run.is_in_shadow = false;
  SetBoundary(run.newer);
}

// LRU would trim a run from its tail, too, so the shadow keeps the front.
void ShadowLru::Divided(RunLink front, uint32_t front_pages, RunLink tail) {
  if (boundary_ != front && boundary_ != tail) return;
  const bool is_tail_in = boundary_pages_ > front_pages;
  history_->At(tail).is_in_shadow = is_tail_in;
  boundary_ = is_tail_in ? tail : front;
  if (is_tail_in) boundary_pages_ -= front_pages;
}

void ShadowLru::Shrinks(RunLink link, uint32_t kept) {
  const uint32_t pages = PagesOf(link);
  if (pages <= kept) return;
  CountOut(link, pages - kept);
  if (link == boundary_) boundary_pages_ = kept;
}

void ShadowLru::Evicted(RunLink ghost, bool is_in_turn) {
  const uint32_t pages = PagesOf(ghost);
  debt_ += pages;
  if (is_in_turn) in_turn_ += pages;
}

void ShadowLru::CountUse(RunLink link, uint32_t pages) {
  const uint32_t in_shadow = PagesOf(link, pages);
  const uint32_t in_cache = IsGhost(link) ? 0 : pages;
  hits_ += in_shadow;
  hits_of_cache_ += in_cache;
  Gain(int64_t{in_cache} - in_shadow);
}

void ShadowLru::Gain(int64_t pages) {
  gain_ = std::min<int64_t>(gain_ + pages, capacity_);
}

bool ShadowLru::MayOwe() const {
  return static_cast<double>(debt_) - static_cast<double>(in_turn_) <
         debt_limit();
}

double ShadowLru::debt_limit() const {
  return std::max(0.0, static_cast<double>(gain_) +
                           kLossOfRequests * static_cast<double>(requested_));
}

void ShadowLru::CountOut(RunLink link, uint32_t pages) {
  pages_ -= pages;
  if (IsGhost(link)) debt_ -= pages;
}

void ShadowLru::SetBoundary(RunLink link) {
  boundary_ = link;
  boundary_pages_ = link == kNoRun ? 0 : history_->At(link).pages;
}

}  // namespace pando
