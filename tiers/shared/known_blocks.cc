#include "tiers/shared/known_blocks.h"

#include "absl/time/clock.h"

namespace pando {
namespace {

// When it knows more blocks, BeginPeriod forgets all.
constexpr size_t kMaxKnown = size_t{256} * 1024;

}  // namespace

absl::Time KnownBlocks::PresentPeriod() {
  return absl::UnixEpoch() +
         absl::Floor(absl::Now() - absl::UnixEpoch(), kPeriod);
}

bool KnownBlocks::IsPeriodOver() const { return period() != PresentPeriod(); }

void KnownBlocks::BeginPeriod() {
  absl::MutexLock hold(&mutex_);
  const absl::Time present = PresentPeriod();
  if (period_ != present || hashes_.size() > kMaxKnown) hashes_.clear();
  period_ = present;
}

absl::Time KnownBlocks::period() const {
  absl::MutexLock hold(&mutex_);
  return period_;
}

size_t KnownBlocks::CountKnown(std::span<const PageHash> run) const {
  absl::MutexLock hold(&mutex_);
  size_t known = 0;
  while (known < run.size() && hashes_.contains(run[known])) ++known;
  return known;
}

std::vector<BlockKey> KnownBlocks::UnknownOf(uint64_t ns_digest,
                                             std::span<const PageHash> prompt,
                                             size_t begin) const {
  std::vector<BlockKey> keys;
  absl::MutexLock hold(&mutex_);
  for (size_t i = begin; i < prompt.size(); ++i) {
    if (hashes_.contains(prompt[i])) continue;
    keys.push_back({.ns_digest = ns_digest,
                    .hash = prompt[i],
                    .ordinal = static_cast<uint32_t>(i + 1)});
  }
  return keys;
}

void KnownBlocks::Add(std::span<const PageHash> hashes, uint64_t generation) {
  absl::MutexLock hold(&mutex_);
  if (generation == generation_) hashes_.insert(hashes.begin(), hashes.end());
}

void KnownBlocks::Remove(std::span<const PageHash> hashes) {
  absl::MutexLock hold(&mutex_);
  for (const PageHash& hash : hashes) hashes_.erase(hash);
}

void KnownBlocks::Forget() {
  absl::MutexLock hold(&mutex_);
  ++generation_;
  hashes_.clear();
}

uint64_t KnownBlocks::generation() const {
  absl::MutexLock hold(&mutex_);
  return generation_;
}

}  // namespace pando
