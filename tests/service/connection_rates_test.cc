#include "os/sockets/connection_rates.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace pando {
namespace {

const absl::Duration kBetween = absl::Seconds(1) / ConnectionRates::kPerSecond;

class ConnectionRatesTest : public testing::Test {
 protected:
  // Returns how many of 10,000 connections at the same time are admitted.
  int AdmittedAtOnce(const std::string& peer) {
    int admitted = 0;
    for (int i = 0; i < 10'000; ++i) admitted += rates_.Admit(peer, now_);
    return admitted;
  }

  ConnectionRates rates_;
  absl::Time now_ = absl::UnixEpoch();
};

TEST_F(ConnectionRatesTest, AFloodIsCutOffAndHoldsUpNoOtherPeer) {
  EXPECT_EQ(AdmittedAtOnce("one"), ConnectionRates::kAtOnce);
  EXPECT_TRUE(rates_.Admit("other", now_));
}

TEST_F(ConnectionRatesTest, MoreIsAdmittedAsTimePasses) {
  AdmittedAtOnce("one");
  now_ += kBetween;
  EXPECT_EQ(AdmittedAtOnce("one"), 1);
  now_ += 10 * kBetween;
  EXPECT_EQ(AdmittedAtOnce("one"), 10);
  now_ += absl::Hours(1);
  EXPECT_EQ(AdmittedAtOnce("one"), ConnectionRates::kAtOnce);
}

TEST_F(ConnectionRatesTest, PeersThatPausedAreForgotten) {
  for (int i = 0; i < 100'000; ++i) {
    EXPECT_TRUE(rates_.Admit(absl::StrCat(i), now_));
    now_ += kBetween;
  }
  EXPECT_LT(rates_.peers(), 1100u);
}

}  // namespace
}  // namespace pando
