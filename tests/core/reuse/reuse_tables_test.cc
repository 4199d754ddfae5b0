// Compares the fitted values with the numbers of the observed pages.

#include "core/reuse/reuse_tables.h"

#include <cmath>
#include <memory>
#include <vector>

#include "gtest/gtest.h"

namespace pando {
namespace {

class ReuseTablesTest : public testing::Test {
 protected:
  // Counts pages of the class that are used with the chance `hazard` in each
  // bin that they reach.
  void Observe(uint32_t reuse_class, double hazard, double pages = 1e6) {
    for (uint32_t bin = 0; bin < kAgeBins; ++bin) {
      tables_->CountReached(reuse_class, bin, static_cast<uint32_t>(pages));
      tables_->CountReused(reuse_class, bin,
                           static_cast<uint32_t>(pages * hazard));
      pages *= 1 - hazard;
    }
  }
  // Takes as many steps as the first rounds have ticks.
  void Fit(uint32_t steps = 3 * 128) {
    for (uint32_t i = 0; i < steps; ++i) tables_->FitStep(1, 10);
  }

  const uint32_t once_ = ReuseClass{.uses = 0}.number();
  const uint32_t often_ = ReuseClass{.uses = 6, .interval = 2}.number();
  std::unique_ptr<ReuseTables> tables_ = std::make_unique<ReuseTables>();
};

TEST_F(ReuseTablesTest, BeforeAnythingIsLearntAllClassesAreWorthTheSame) {
  tables_->CountReached(once_, 0, 1);
  tables_->CountReached(often_, 0, 1);
  for (uint32_t bin = 0; bin < kAgeBins; ++bin) {
    EXPECT_EQ(tables_->index(once_, bin), tables_->index(often_, bin));
  }
  // A page that was not used for longer has a longer wait ahead.
  for (uint32_t bin = 3; bin < kAgeBins; ++bin) {
    EXPECT_LT(tables_->index(once_, bin), tables_->index(once_, bin - 1));
  }
}

TEST_F(ReuseTablesTest, WhatIsUsedMoreOftenIsWorthMore) {
  Observe(once_, 0.02);
  Observe(often_, 0.3);
  Fit();
  for (uint32_t bin = 0; bin < kAgeBins; ++bin) {
    EXPECT_LT(tables_->index(once_, bin), tables_->index(often_, bin)) << bin;
  }
  EXPECT_NEAR(tables_->ChanceOfReuse(once_, 0), 1 - std::pow(0.98, kAgeBins),
              0.05);
}

// 21 bins end by the age of 1,024 ticks.
TEST_F(ReuseTablesTest, TheChanceByUsesIsThatOfAllPagesUsedSoOften) {
  EXPECT_NEAR(tables_->ChanceByUses(0), 1 - std::pow(0.85, 21), 1e-6);
  Observe(once_, 0.02);
  Observe(ReuseClass{.uses = 0, .output = 1}.number(), 0.02);
  Observe(often_, 0.3);
  Fit();
  EXPECT_NEAR(tables_->ChanceByUses(0), 1 - std::pow(0.98, 21), 0.05);
  EXPECT_NEAR(tables_->ChanceByUses(6), 1 - std::pow(0.7, 21), 0.05);
}

TEST_F(ReuseTablesTest, WhatFewPagesShowWeighsLittle) {
  Observe(once_, 0.02);
  Observe(often_, 0.9, 10);
  Fit();
  const float few = tables_->index(often_, 0);
  Observe(often_, 0.9);
  Fit();
  EXPECT_LT(few, tables_->index(often_, 0) / 3);
}

TEST_F(ReuseTablesTest, AClassThatWasNeverSeenIsJudgedByItsLevels) {
  Observe(once_, 0.02);
  Observe(often_, 0.3);
  Fit();
  const uint32_t alike = ReuseClass{.uses = 6, .interval = 5}.number();
  tables_->CountReached(alike, 0, 1);
  EXPECT_GT(tables_->index(alike, 0), tables_->index(once_, 0));
}

// The index is the best ratio of hits to waiting over all times to wait. The
// test tries them one by one.
TEST_F(ReuseTablesTest, TheIndexIsTheBestChanceForATick) {
  Observe(once_, 0.1);
  for (uint32_t bin = 8; bin < 16; ++bin) {
    tables_->CountReused(once_, bin, 3000);  // is used after a while
  }
  Fit();
  std::vector<double> hazards;
  for (uint32_t bin = 0; bin < kAgeBins; ++bin) {
    hazards.push_back(1 - (1 - tables_->ChanceOfReuse(once_, bin)) /
                              (1 - (bin + 1 < kAgeBins
                                        ? tables_->ChanceOfReuse(once_, bin + 1)
                                        : 0)));
  }
  for (uint32_t bin = 0; bin < kAgeBins; ++bin) {
    double best = 0;
    double alive = 1;
    double hits = 0;
    double wait = 0;
    for (uint32_t b = bin; b < kAgeBins; ++b) {
      const double width = (AgeBound(b + 1) - AgeBound(b)) / (b == bin ? 2 : 1);
      hits += alive * hazards[b];
      wait += alive * width * (1 - hazards[b] / 2);
      alive *= 1 - hazards[b];
      best = std::max(best, hits / wait);
    }
    EXPECT_NEAR(tables_->index(once_, bin) / best, 1, 1e-3) << bin;
  }
}

TEST_F(ReuseTablesTest, ReclassifiedPagesCountForTheNewClass) {
  Observe(once_, 0.3);
  auto other = std::make_unique<ReuseTables>();
  other->CountReached(once_, 0, 500);
  other->CountReached(once_, 1, 500);
  other->Reclassify(once_, often_, 1, 500);
  tables_ = std::make_unique<ReuseTables>();
  tables_->CountReached(once_, 0, 0);
  tables_->CountReached(often_, 0, 500);
  tables_->CountReached(often_, 1, 500);
  for (uint32_t tick = 0; tick < 300; ++tick) {
    tables_->FitStep(1, 10);
    other->FitStep(1, 10);
  }
  for (uint32_t bin = 0; bin < kAgeBins; ++bin) {
    EXPECT_EQ(tables_->index(once_, bin), other->index(once_, bin));
    EXPECT_EQ(tables_->index(often_, bin), other->index(often_, bin));
  }
}

TEST_F(ReuseTablesTest, WhatWasSeenLongAgoFades) {
  Observe(once_, 0.5, 1e5);
  for (uint32_t tick = 0; tick < 100'000; ++tick) {
    tables_->FitStep(100'000, 10);
  }
  const float faded = tables_->index(once_, 0);
  Observe(once_, 0.01, 1e5);
  for (uint32_t tick = 0; tick < 4096; ++tick) tables_->FitStep(100'000, 10);
  EXPECT_LT(tables_->index(once_, 0), faded / 3);
}

}  // namespace
}  // namespace pando
