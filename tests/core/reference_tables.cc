#include "tests/core/reference_tables.h"

#include <algorithm>
#include <cmath>

namespace pando {
namespace {

constexpr uint32_t kClasses = 2048;
constexpr uint32_t kBins = 40;
constexpr size_t kFactors = 5;
// The number of classes that a tick handles in the first rounds. These rounds
// take 128 ticks, and tests do not get further. Fitting an index costs as much
// as eight classes.
constexpr uint32_t kStep = (kFactors + 8) * kClasses / 128;
constexpr uint32_t kIndexStep = kStep / 8;

// The bins are grouped into zones. The zones of later factors are longer.
uint32_t ZoneOf(size_t factor, uint32_t bin) {
  return factor < 2 ? bin : bin / 8 * 8;
}

float Width(uint32_t bin) {
  const auto bound = [](uint32_t b) {
    return b == 0 ? 0.0 : std::exp2((b - 1) / 2.0);
  };
  return static_cast<float>(bound(bin + 1) - bound(bin));
}

}  // namespace

ReferenceTables::ReferenceTables() : factors_(kFactors) {
  for (Factor& factor : factors_) {
    for (uint32_t group = 0; group < 8; ++group) {
      for (uint32_t bin = 0; bin < kBins; ++bin) factor[{group, bin}] = 1;
    }
  }
}

void ReferenceTables::CountReached(uint32_t reuse_class, uint32_t bin,
                                   uint32_t pages) {
  if (!index_.contains({reuse_class, 0})) FitIndexes(reuse_class, factors_);
  reached_[{reuse_class, bin}] += static_cast<float>(pages);
}

void ReferenceTables::Reclassify(uint32_t from, uint32_t to, uint32_t bin,
                                 uint32_t pages) {
  for (uint32_t b = 0; b <= bin; ++b) {
    reached_[{from, b}] -= static_cast<float>(pages);
    CountReached(to, b, pages);
  }
}

void ReferenceTables::CountReused(uint32_t reuse_class, uint32_t bin,
                                  uint32_t pages) {
  reused_[{reuse_class, bin}] += static_cast<float>(pages);
}

uint32_t ReferenceTables::GroupOf(uint32_t reuse_class, size_t factor) {
  const uint32_t groups[] = {0, reuse_class % 8, reuse_class / 8 % 8,
                             reuse_class / 64 % 4, reuse_class / 256};
  return groups[factor];
}

float ReferenceTables::Hazard(std::span<const Factor> factors,
                              uint32_t reuse_class, uint32_t bin) {
  float hazard = 0.15f;
  for (size_t f = 0; f < factors.size(); ++f) {
    hazard =
        std::min(0.97f, hazard * factors[f].at({GroupOf(reuse_class, f), bin}));
  }
  return hazard;
}

double ReferenceTables::ChanceByUses(uint32_t uses_level) const {
  const auto all_and_uses = std::span(factors_).first(2);
  double never = 1;
  for (uint32_t bin = 0; bin <= 20; ++bin) {
    never *= 1 - Hazard(all_and_uses, uses_level, bin);
  }
  return 1 - never;
}

// Sets the best ratio of hits to waiting. Each bin is tried as the one after
// which to stop waiting.
void ReferenceTables::FitIndexes(uint32_t reuse_class,
                                 const std::vector<Factor>& factors) {
  for (uint32_t begin = 0; begin < kBins; ++begin) {
    float alive = 1;
    float hits = 0;
    float wait = 0;
    float best = 0;
    for (uint32_t bin = begin; bin < kBins; ++bin) {
      const float hazard = Hazard(factors, reuse_class, bin);
      const float time = Width(bin) * (1 - hazard / 2);
      hits += alive * hazard;
      wait += bin == begin ? time / 2 : alive * time;
      best = std::max(best, hits / wait);
      alive *= 1 - hazard;
    }
    index_[{reuse_class, begin}] = best;
  }
}

void ReferenceTables::FitStep(float pages_a_request) {
  const bool is_index = fitted_.size() == kFactors;
  const uint32_t end =
      std::min(kClasses, next_class_ + (is_index ? kIndexStep : kStep));
  for (; next_class_ < end; ++next_class_) {
    const uint32_t c = next_class_;
    if (!index_.contains({c, 0})) continue;
    if (is_index) {
      FitIndexes(c, fitted_);
      continue;
    }
    for (uint32_t bin = 0; bin < kBins; ++bin) {
      auto& [seen, expected] = sums_[{GroupOf(c, fitted_.size()), bin}];
      seen += reused_[{c, bin}];
      expected += reached_[{c, bin}] * Hazard(fitted_, c, bin);
    }
  }
  if (end < kClasses) return;
  next_class_ = 0;
  if (is_index) {
    factors_ = std::move(fitted_);
    fitted_.clear();
  } else {
    FitFactor(pages_a_request);
  }
}

void ReferenceTables::FitFactor(float pages_a_request) {
  const size_t f = fitted_.size();
  Factor factor;
  for (uint32_t group = 0; group < 8; ++group) {
    for (uint32_t bin = 0; bin < kBins; ++bin) {
      float seen = 0;
      float expected = 0;
      for (uint32_t b = 0; b < kBins; ++b) {
        if (ZoneOf(f, b) != ZoneOf(f, bin)) continue;
        seen += sums_[{group, b}].first;
        expected += sums_[{group, b}].second;
      }
      const float hazard = f == 1 ? 0.15f * fitted_[0].at({0, bin}) : 0.15f;
      const float prior = 16 * pages_a_request * hazard;
      factor[{group, bin}] = (seen + prior) / (expected + prior);
    }
  }
  fitted_.push_back(std::move(factor));
  sums_.clear();
}

}  // namespace pando
