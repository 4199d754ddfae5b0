#include "os/sockets/connection_rates.h"

#include <algorithm>
#include <cstdint>

namespace pando {
namespace {

constexpr int64_t kStepNanoseconds =
    int64_t{1'000'000'000} / ConnectionRates::kPerSecond;
constexpr absl::Duration kStep = absl::Nanoseconds(kStepNanoseconds);
constexpr absl::Duration kFullAfter =
    absl::Nanoseconds(kStepNanoseconds * ConnectionRates::kAtOnce);
// With more peers than this, those whose buckets are full are forgotten.
constexpr size_t kManyPeers = 1024;

}  // namespace

bool ConnectionRates::Admit(const std::string& peer, absl::Time now) {
  if (buckets_.size() > kManyPeers) {
    absl::erase_if(buckets_, [now](const auto& entry) {
      return entry.second <= now - kFullAfter;
    });
  }
  Bucket& bucket =
      buckets_.try_emplace(peer, absl::InfinitePast()).first->second;
  bucket = std::max(bucket, now - (kFullAfter - kStep));
  if (bucket > now) return false;
  bucket += kStep;
  return true;
}

}  // namespace pando
