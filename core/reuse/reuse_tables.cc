#include "core/reuse/reuse_tables.h"

#include <algorithm>
#include <span>

namespace pando {
namespace {

constexpr float kPriorHazard = 0.15f;
constexpr float kMaxHazard = 0.97f;
// The prior weighs as much as the new pages of this many requests.
constexpr float kPriorRequests = 16;
// The first two factors are fitted for each bin, the others for so many bins
// together.
constexpr uint32_t kZone = 8;

// The number of bins for ages below 1,024.
constexpr uint32_t kChanceBins = 21;

// A round takes a 16th of the ticks so far, within these bounds. Counts fade
// once rounds have the maximal length.
constexpr uint32_t kMinRoundTicks = 128;
constexpr uint32_t kMaxRoundTicks = 1024;
constexpr uint32_t kTicksOfRound = 16;
constexpr float kFade = 1 - 1.0f / kTicksOfRound;
// Fitting the indexes of a class takes as long as summing up so many classes.
constexpr uint32_t kIndexWork = 8;

const std::array<float, kAgeBins>& BinWidths() {
  static const auto kWidths = [] {
    std::array<float, kAgeBins> widths;
    for (uint32_t b = 0; b < kAgeBins; ++b) {
      widths[b] = static_cast<float>(AgeBound(b + 1) - AgeBound(b));
    }
    return widths;
  }();
  return kWidths;
}

// The chance of a use within bins of these hazards.
double ChanceIn(std::span<const float> hazards) {
  double unused = 1;
  for (const float hazard : hazards) unused *= 1 - hazard;
  return 1 - unused;
}

}  // namespace

ReuseTables::ReuseTables() {
  for (auto& groups : factors_) {
    for (Row& row : groups) row.fill(1);
  }
  BeginRound(0);
}

void ReuseTables::CountReached(uint32_t reuse_class, uint32_t bin,
                               uint32_t pages) {
  if (!known_[reuse_class]) {
    known_.set(reuse_class);
    FitIndex(reuse_class, factors_);
  }
  reached_[reuse_class][bin] += static_cast<float>(pages);
}

// Because of fading, the count may be less than the pages that move.
void ReuseTables::Reclassify(uint32_t from, uint32_t to, uint32_t bin,
                             uint32_t pages) {
  for (uint32_t b = 0; b <= bin; ++b) {
    float& reached = reached_[from][b];
    reached = std::max(0.0f, reached - static_cast<float>(pages));
    CountReached(to, b, pages);
  }
}

double ReuseTables::ChanceOfReuse(uint32_t reuse_class, uint32_t bin) const {
  const Row hazards = HazardsOf(factors_, reuse_class, kFactors);
  return ChanceIn(std::span(hazards).subspan(bin));
}

double ReuseTables::ChanceByUses(uint32_t uses_level) const {
  const Row hazards =
      HazardsOf(factors_, ReuseClass{.uses = uses_level}.number(), 2);
  return ChanceIn(std::span(hazards).first(kChanceBins));
}

uint32_t ReuseTables::GroupOf(uint32_t reuse_class, uint32_t factor) {
  const ReuseClass of = ReuseClass::FromNumber(reuse_class);
  switch (factor) {
    case 1:
      return of.uses;
    case 2:
      return of.interval;
    case 3:
      return of.output;
    case 4:
      return of.new_tokens;
    default:
      return 0;
  }
}

ReuseTables::Row ReuseTables::HazardsOf(const Factors& factors,
                                        uint32_t reuse_class, uint32_t count) {
  Row hazards;
  hazards.fill(kPriorHazard);
  for (uint32_t f = 0; f < count; ++f) {
    const Row& row = factors[f][GroupOf(reuse_class, f)];
    for (uint32_t b = 0; b < kAgeBins; ++b) {
      hazards[b] = std::min(kMaxHazard, hazards[b] * row[b]);
    }
  }
  return hazards;
}

void ReuseTables::SumUp(uint32_t reuse_class, uint32_t factor) {
  const Row hazards = HazardsOf(fitted_, reuse_class, factor);
  const uint32_t group = GroupOf(reuse_class, factor);
  for (uint32_t b = 0; b < kAgeBins; ++b) {
    seen_[group][b] += reused_[reuse_class][b];
    expected_[group][b] += reached_[reuse_class][b] * hazards[b];
  }
}

void ReuseTables::EndFactor(uint32_t factor, float pages_a_request) {
  const uint32_t width = factor < 2 ? 1 : kZone;
  for (size_t group = 0; group < fitted_[factor].size(); ++group) {
    for (uint32_t zone = 0; zone < kAgeBins; zone += width) {
      float seen = 0;
      float expected = 0;
      for (uint32_t b = zone; b < zone + width; ++b) {
        seen += seen_[group][b];
        expected += expected_[group][b];
      }
      const float hazard =
          factor == 1 ? kPriorHazard * fitted_[0][0][zone] : kPriorHazard;
      const float prior = kPriorRequests * pages_a_request * hazard;
      const float ratio = (seen + prior) / (expected + prior);
      for (uint32_t b = zone; b < zone + width; ++b) {
        fitted_[factor][group][b] = ratio;
      }
    }
  }
  seen_ = {};
  expected_ = {};
}

// The wait begins in the middle of bin `begin`. For each `begin`, the chance of
// reuse and the time spent waiting are summed up bin by bin, and the best ratio
// of the two is kept.
void ReuseTables::FitIndex(uint32_t reuse_class, const Factors& factors) const {
  const Row hazards = HazardsOf(factors, reuse_class, kFactors);
  const Row& widths = BinWidths();
  Row alive{};
  Row hits{};
  Row wait{};
  Row best{};
  for (uint32_t end = 0; end < kAgeBins; ++end) {
    const float hazard = hazards[end];
    const float time = widths[end] * (1 - hazard / 2);
    for (uint32_t begin = 0; begin < end; ++begin) {
      hits[begin] += alive[begin] * hazard;
      wait[begin] += alive[begin] * time;
      best[begin] = std::max(best[begin], hits[begin] / wait[begin]);
      alive[begin] *= 1 - hazard;
    }
    hits[end] = hazard;
    wait[end] = time / 2;
    best[end] = hits[end] / wait[end];
    alive[end] = 1 - hazard;
  }
  index_[reuse_class] = best;
  is_fitted_.set(reuse_class);
}

void ReuseTables::Fade(uint32_t reuse_class) {
  for (uint32_t b = 0; b < kAgeBins; ++b) {
    reached_[reuse_class][b] *= kFade;
    reused_[reuse_class][b] *= kFade;
  }
}

void ReuseTables::BeginRound(uint32_t tick) {
  part_ = 0;
  const uint32_t ticks =
      std::clamp(tick / kTicksOfRound, kMinRoundTicks, kMaxRoundTicks);
  constexpr uint32_t kWork = (kFactors + kIndexWork) * kReuseClasses;
  step_work_ = (kWork + ticks - 1) / ticks;
  fades_ = ticks == kMaxRoundTicks;
}

ReuseTables::Refitted ReuseTables::FitStep(uint32_t tick,
                                           float pages_a_request) {
  const bool is_index = part_ == kFactors;
  const uint32_t first = next_class_;
  const uint32_t end =
      std::min(kReuseClasses,
               first + (is_index ? (step_work_ + kIndexWork - 1) / kIndexWork
                                 : step_work_));
  for (uint32_t c = first; c < end; ++c) {
    if (!known_[c]) continue;
    if (!is_index) {
      SumUp(c, part_);
      continue;
    }
    is_fitted_.reset(c);
    if (fades_) Fade(c);
  }
  next_class_ = end % kReuseClasses;
  if (end == kReuseClasses) {
    if (is_index) {
      factors_ = fitted_;
      BeginRound(tick);
    } else {
      EndFactor(part_++, pages_a_request);
    }
  }
  return is_index ? Refitted{first, end} : Refitted{};
}

}  // namespace pando
