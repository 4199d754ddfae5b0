#include "tiers/local/tier_index.h"

#include <utility>

#include "base/check.h"

namespace pando {

// Slots with low numbers are used first.
TierIndex::TierIndex(uint32_t slots) : is_used_(slots) {
  free_.reserve(slots);
  for (uint32_t slot = slots; slot-- > 0;) free_.push_back(slot);
}

std::optional<uint32_t> TierIndex::BeginStore(const PageHash& hash,
                                              uint64_t ns_digest) {
  if (blocks_.contains(hash)) return std::nullopt;
  while (!free_.empty() && is_used_[free_.back()]) free_.pop_back();
  if (free_.empty() && !EvictOne()) return std::nullopt;
  const uint32_t slot = free_.back();
  free_.pop_back();
  is_used_[slot] = true;
  blocks_[hash] = {.place = {slot, 0},
                   .ns_digest = ns_digest,
                   .state = State::kWriting,
                   .use = by_use_.end()};
  return slot;
}

bool TierIndex::EndStore(const PageHash& hash, uint64_t checksum) {
  Block& block = blocks_.at(hash);
  if (block.state == State::kForgotten) return false;
  CHECK(block.state == State::kWriting);
  block.place.checksum = checksum;
  block.state = State::kStored;
  block.use = by_use_.insert(by_use_.end(), hash);
  return true;
}

void TierIndex::AbandonStore(const PageHash& hash) {
  CHECK(blocks_.at(hash).state != State::kStored);
  Forget(hash);
}

std::optional<TierIndex::Place> TierIndex::BeginLoad(const PageHash& hash) {
  const auto it = blocks_.find(hash);
  if (it == blocks_.end() || it->second.state != State::kStored) {
    return std::nullopt;
  }
  ++it->second.readers;
  return it->second.place;
}

void TierIndex::EndLoad(const PageHash& hash, bool is_intact) {
  Block& block = blocks_.at(hash);
  CHECK(block.readers > 0);
  --block.readers;
  if (!is_intact && block.state == State::kStored) Lose(hash, block);
  if (block.state == State::kForgotten && block.readers == 0) Forget(hash);
}

size_t TierIndex::CountStored(std::span<const PageHash> run) const {
  size_t count = 0;
  for (; count < run.size(); ++count) {
    const auto it = blocks_.find(run[count]);
    if (it == blocks_.end() || it->second.state != State::kStored) break;
  }
  return count;
}

void TierIndex::Touch(std::span<const PageHash> prompt) {
  for (size_t i = prompt.size(); i-- > 0;) {
    const auto it = blocks_.find(prompt[i]);
    if (it == blocks_.end() || it->second.state != State::kStored) continue;
    by_use_.splice(by_use_.end(), by_use_, it->second.use);
  }
}

bool TierIndex::Restore(const PageHash& hash, uint64_t ns_digest,
                        const Place& place) {
  CHECK(!is_used_[place.slot]);
  const auto [it, is_new] = blocks_.try_emplace(hash);
  if (!is_new) return false;
  is_used_[place.slot] = true;
  it->second = {.place = place,
                .ns_digest = ns_digest,
                .state = State::kStored,
                .use = by_use_.insert(by_use_.end(), hash)};
  return true;
}

bool TierIndex::Tell(const PageHash& hash) {
  const auto it = blocks_.find(hash);
  if (it == blocks_.end() || it->second.state != State::kStored) return false;
  return !std::exchange(it->second.is_told, true);
}

std::vector<TierIndex::Forgotten> TierIndex::ForgetAll(
    std::optional<uint64_t> ns_digest) {
  return ForgetIf([&](const Block& block) {
    return !ns_digest.has_value() || block.ns_digest == *ns_digest;
  });
}

std::vector<TierIndex::Forgotten> TierIndex::ForgetIn(
    const std::function<bool(uint32_t slot)>& is_meant) {
  return ForgetIf(
      [&](const Block& block) { return is_meant(block.place.slot); });
}

std::vector<TierIndex::Forgotten> TierIndex::ForgetIf(
    const std::function<bool(const Block&)>& is_meant) {
  std::vector<Forgotten> forgotten;
  for (auto& [hash, block] : blocks_) {
    if (block.state == State::kForgotten || !is_meant(block)) continue;
    if (block.state == State::kStored) {
      ++block.readers;
      Lose(hash, block);
      forgotten.push_back({hash, block.place.slot});
    }
    block.state = State::kForgotten;
  }
  return forgotten;
}

bool TierIndex::EvictOne() {
  for (const PageHash& oldest : by_use_) {
    Block& block = blocks_.at(oldest);
    if (block.readers > 0) continue;
    const PageHash hash = oldest;
    Lose(hash, block);
    Forget(hash);
    return true;
  }
  return false;
}

void TierIndex::Lose(const PageHash& hash, Block& block) {
  if (block.is_told) gone_.push_back(hash);
  block.state = State::kForgotten;
  by_use_.erase(block.use);
}

void TierIndex::Forget(const PageHash& hash) {
  const auto it = blocks_.find(hash);
  is_used_[it->second.place.slot] = false;
  free_.push_back(it->second.place.slot);
  blocks_.erase(it);
}

}  // namespace pando
