#include "core/eviction/ghost_list.h"

#include "absl/strings/string_view.h"

namespace pando {

GhostList::Place GhostList::StartOf(const NamespaceKey& ns) {
  return absl::HashOf(ns);
}

uint64_t GhostList::Fingerprint(std::span<const Token> page) {
  return absl::HashOf(absl::string_view(
      reinterpret_cast<const char*>(page.data()), page.size_bytes()));
}

void GhostList::Add(Place place, uint64_t fingerprint, EvictionReason reason,
                    absl::Time now) {
  const Record record{{place, fingerprint}, {reason, now}};
  if (const auto known = newest_.find(record.key); known != newest_.end()) {
    newest_.erase(known);
  }
  if (records_.size() < kMaxGhosts) {
    records_.push_back(record);
    newest_.insert(static_cast<uint32_t>(records_.size() - 1));
    return;
  }
  // The set holds only the newest record of a key.
  const auto oldest = newest_.find(records_[next_].key);
  if (oldest != newest_.end() && *oldest == next_) newest_.erase(oldest);
  records_[next_] = record;
  newest_.insert(next_);
  next_ = (next_ + 1) % kMaxGhosts;
}

std::optional<GhostList::Ghost> GhostList::Find(Place place,
                                                uint64_t fingerprint) const {
  const auto found = newest_.find(Key{place, fingerprint});
  if (found == newest_.end()) return std::nullopt;
  return records_[*found].ghost;
}

}  // namespace pando
