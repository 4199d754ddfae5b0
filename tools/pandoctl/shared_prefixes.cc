#include "tools/pandoctl/shared_prefixes.h"

#include <algorithm>
#include <functional>

namespace pando::ctl {

void FleetPages::Add(size_t machine, const v1::BlocksStored& stored,
                     uint64_t page_bytes) {
  auto parent = index_.find(stored.parent_block_hash());
  std::optional<size_t> before;
  if (parent != index_.end()) before = parent->second;
  for (const std::string& hash : stored.block_hashes()) {
    const auto [place, is_new] = index_.try_emplace(hash, pages_.size());
    const size_t number = place->second;
    if (is_new) {
      Page& page = pages_.emplace_back();
      page.hash = hash;
      if (stored.has_extra_key()) page.extra_key = stored.extra_key();
      page.parent = before.value_or(number);
      page.tokens = stored.page_tokens() +
                    (before.has_value() ? pages_[*before].tokens : 0);
    } else {
      pages_[number].duplicated_bytes += page_bytes;
    }
    pages_[number].machines.push_back(machine);
    before = number;
  }
}

FleetPages::Totals FleetPages::totals() const {
  Totals totals;
  for (const Page& page : pages_) {
    const size_t holders = page.machines.size();
    if (totals.pages_by_holders.size() <= holders) {
      totals.pages_by_holders.resize(holders + 1);
    }
    ++totals.pages_by_holders[holders];
    totals.duplicated_bytes += page.duplicated_bytes;
  }
  return totals;
}

// A page belongs to the prefix of its parent if it is the first child that the
// same machines hold; so a prefix ends where it branches or is held by fewer.
std::vector<SharedPrefix> FleetPages::SharedPrefixes() const {
  constexpr size_t kNone = SIZE_MAX;
  std::vector<SharedPrefix> prefixes;
  std::vector<size_t> prefix_of(pages_.size(), kNone);
  std::vector<bool> goes_on(pages_.size());
  for (size_t i = 0; i < pages_.size(); ++i) {
    const Page& page = pages_[i];
    if (page.machines.size() < 2) continue;
    const size_t parent = page.parent;
    if (parent != i && !goes_on[parent] &&
        pages_[parent].machines == page.machines) {
      goes_on[parent] = true;
      prefix_of[i] = prefix_of[parent];
    } else {
      prefix_of[i] = prefixes.size();
      prefixes.emplace_back();
    }
    SharedPrefix& prefix = prefixes[prefix_of[i]];
    prefix.hash = page.hash;
    prefix.extra_key = page.extra_key;
    prefix.tokens = page.tokens;
    prefix.machines = page.machines;
    prefix.duplicated_bytes += page.duplicated_bytes;
  }
  std::ranges::stable_sort(prefixes, std::ranges::greater(),
                           &SharedPrefix::duplicated_bytes);
  return prefixes;
}

}  // namespace pando::ctl
