#include "tiers/blocks/kept_blocks.h"

#include <utility>

namespace pando {
namespace {

// Twice as many as there can be at a time; those that were opened first are
// forgotten.
constexpr size_t kMostKnownKinds = 2 * size_t{kMaxKinds};

}  // namespace

void KeptBlocks::Know(const BlockKind& kind) {
  absl::MutexLock hold(&mutex_);
  if (!kinds_.contains(kind.number)) Add(kind);
}

BlockIndex::Garbage KeptBlocks::Renew(const BlockKind& kind) {
  absl::MutexLock hold(&mutex_);
  if (kinds_.contains(kind.number)) return nullptr;
  const uint64_t name = Add(kind)->kind.name();
  if (takes_stock_) renewed_.insert(name);
  return index_.ForgetKind(name);
}

// A kind that is known by another number was replaced, or has gone and come
// again.
std::shared_ptr<KnownKind> KeptBlocks::Add(const BlockKind& kind) {
  auto known = std::make_shared<KnownKind>(TierKindOf(kind));
  std::shared_ptr<KnownKind>& newest = newest_[known->kind.name()];
  if (newest != nullptr) newest->is_newest = false;
  newest = known;
  kinds_.emplace(kind.number, known);
  if (kinds_.size() > kMostKnownKinds) {
    const std::shared_ptr<KnownKind> first = kinds_.begin()->second;
    kinds_.erase(kinds_.begin());
    if (first->is_newest) newest_.erase(first->kind.name());
  }
  return known;
}

std::shared_ptr<KnownKind> KeptBlocks::Find(KindNumber number) const {
  absl::MutexLock hold(&mutex_);
  const auto it = kinds_.find(number);
  return it == kinds_.end() ? nullptr : it->second;
}

std::vector<std::shared_ptr<KnownKind>> KeptBlocks::kinds() const {
  absl::MutexLock hold(&mutex_);
  std::vector<std::shared_ptr<KnownKind>> kinds;
  for (const auto& [number, kind] : kinds_) kinds.push_back(kind);
  return kinds;
}

std::vector<bool> KeptBlocks::Have(const KnownKind& kind,
                                   std::string_view keys) const {
  const size_t key_bytes = kind.kind.key_bytes;
  std::vector<bool> have(keys.size() / key_bytes);
  if (!kind.is_newest) return have;
  absl::MutexLock hold(&mutex_);
  for (size_t i = 0; i < have.size(); ++i) {
    have[i] = index_.Has(kind.NameOf(keys.substr(i * key_bytes, key_bytes)));
  }
  return have;
}

bool KeptBlocks::Has(const BlockName& name) const {
  absl::MutexLock hold(&mutex_);
  return index_.Has(name);
}

bool KeptBlocks::BeginStore(const KnownKind& kind, const BlockName& name,
                            uint64_t bytes, std::vector<BlockName>& evicted) {
  absl::MutexLock hold(&mutex_);
  return kind.is_newest && index_.BeginStore(name, bytes, evicted);
}

bool KeptBlocks::EndStore(const BlockName& name, bool is_written) {
  absl::MutexLock hold(&mutex_);
  return index_.EndStore(name, is_written);
}

void KeptBlocks::Touch(const BlockName& name) {
  absl::MutexLock hold(&mutex_);
  index_.Touch(name);
}

void KeptBlocks::Forget(const BlockName& name) {
  absl::MutexLock hold(&mutex_);
  index_.Forget(name);
}

bool KeptBlocks::Restore(const BlockName& name, uint64_t bytes) {
  absl::MutexLock hold(&mutex_);
  return !renewed_.contains(name.kind) && index_.Restore(name, bytes);
}

void KeptBlocks::EndStock() {
  absl::MutexLock hold(&mutex_);
  takes_stock_ = false;
  renewed_.clear();
}

KeptBlocks::Totals KeptBlocks::totals() const {
  absl::MutexLock hold(&mutex_);
  return {index_.max_bytes(), index_.used_bytes(), index_.count()};
}

}  // namespace pando
