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

uint32_t GhostList::FindNewest(const Key& key) const {
  return newest_.Find(absl::HashOf(key), [&](uint32_t index) {
    return records_[index].key == key;
  });
}

void GhostList::Add(Place place, uint64_t fingerprint, EvictionReason reason,
                    absl::Time now) {
  const Record record{{place, fingerprint}, {reason, now}};
  const uint64_t hash = absl::HashOf(record.key);
  if (const uint32_t known = FindNewest(record.key);
      known != SteadyIndex::kNone) {
    newest_.Remove(hash, known);
  }
  if (records_.size() < kMaxGhosts) {
    records_.push_back(record);
    newest_.Add(hash, static_cast<uint32_t>(records_.size() - 1));
    return;
  }
  const Key& oldest = records_[next_].key;
  if (FindNewest(oldest) == next_) newest_.Remove(absl::HashOf(oldest), next_);
  records_[next_] = record;
  newest_.Add(hash, next_);
  next_ = (next_ + 1) % kMaxGhosts;
}

std::optional<GhostList::Ghost> GhostList::Find(Place place,
                                                uint64_t fingerprint) const {
  const uint32_t found = FindNewest({place, fingerprint});
  if (found == SteadyIndex::kNone) return std::nullopt;
  return records_[found].ghost;
}

}  // namespace pando
