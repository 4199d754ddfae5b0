#include "tests/tiers/reference_tier.h"

#include <algorithm>

namespace pando::tier_program {

void ReferenceTier::Store(std::span<const Block> prompt, size_t begin,
                          bool is_confirmed,
                          const std::function<void()>& meanwhile) {
  std::vector<uint64_t> in_order;
  for (const Block& block : prompt.subspan(begin)) {
    if (HasSlot(block.number) || !MakeRoom()) continue;
    writing_[block.number] = block;
    in_order.push_back(block.number);
  }
  meanwhile();
  for (const uint64_t number : in_order) {
    const auto written = writing_.find(number);
    if (!is_confirmed || written == writing_.end()) continue;
    stored_.insert(*written);
    by_use_.push_back(number);
  }
  writing_.clear();
  Touch(prompt);
}

void ReferenceTier::Touch(std::span<const Block> prompt) {
  for (auto block = prompt.rbegin(); block != prompt.rend(); ++block) {
    if (!IsStored(block->number)) continue;
    std::erase(by_use_, block->number);
    by_use_.push_back(block->number);
  }
}

void ReferenceTier::Forget(std::optional<uint64_t> ns_digest) {
  const auto is_meant = [&](const auto& entry) {
    return !ns_digest.has_value() || entry.second.ns_digest == *ns_digest;
  };
  std::erase_if(writing_, is_meant);
  for (const auto& entry : stored_) {
    if (!is_meant(entry)) continue;
    forgotten_.insert(entry);
    std::erase(by_use_, entry.first);
  }
  std::erase_if(stored_, is_meant);
}

void ReferenceTier::EraseForgotten() {
  for (const auto& [number, _] : forgotten_) damaged_.erase(number);
  forgotten_.clear();
}

void ReferenceTier::Restart(std::span<const uint64_t> by_slot) {
  stored_.merge(forgotten_);
  forgotten_.clear();
  by_use_.assign(by_slot.begin(), by_slot.end());
  std::ranges::stable_sort(by_use_, std::greater(), [&](uint64_t number) {
    return stored_.at(number).ordinal;
  });
}

void ReferenceTier::Clear() {
  stored_.clear();
  by_use_.clear();
  forgotten_.clear();
  damaged_.clear();
}

std::set<uint64_t> ReferenceTier::Copies() const {
  std::set<uint64_t> numbers;
  for (const auto& [number, _] : stored_) numbers.insert(number);
  for (const auto& [number, _] : forgotten_) numbers.insert(number);
  return numbers;
}

bool ReferenceTier::HasSlot(uint64_t number) const {
  return stored_.contains(number) || forgotten_.contains(number) ||
         writing_.contains(number);
}

bool ReferenceTier::MakeRoom() {
  if (stored_.size() + forgotten_.size() + writing_.size() < slots_) {
    return true;
  }
  if (by_use_.empty()) return false;
  Remove(by_use_.front());
  return true;
}

void ReferenceTier::Remove(uint64_t number) {
  stored_.erase(number);
  damaged_.erase(number);
  std::erase(by_use_, number);
}

}  // namespace pando::tier_program
