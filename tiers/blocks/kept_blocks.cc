#include "tiers/blocks/kept_blocks.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace pando {

void KeptBlocks::Know(const BlockKind& kind) {
  if (Use(kind.number) != nullptr) return;
  TierKind known = TierKindOf(kind);
  absl::MutexLock hold(&mutex_);
  Add(std::move(known));
}

std::optional<uint64_t> KeptBlocks::Renew(const BlockKind& kind) {
  if (Find(kind.number) != nullptr) return std::nullopt;
  TierKind known = TierKindOf(kind);
  const uint64_t name = known.name();
  absl::MutexLock hold(&mutex_);
  Add(std::move(known));
  if (takes_stock_) renewed_.insert(name);
  return index_.ForgetKind(name);
}

// If the kind is known by another number, that generation was replaced, or the
// kind was removed and opened again.
std::shared_ptr<KnownKind> KeptBlocks::Add(TierKind kind) {
  auto known = std::make_shared<KnownKind>(std::move(kind));
  std::shared_ptr<KnownKind>& newest = newest_[known->kind.name()];
  if (newest != nullptr) newest->is_newest = false;
  newest = known;
  kinds_[known->kind.number] = by_use_.insert(by_use_.end(), known);
  if (by_use_.size() > kMostKnownKinds) ForgetOldestKind();
  return known;
}

// A forgotten kind counts as replaced: otherwise a block that was copied before
// a later reset could be stored after it.
void KeptBlocks::ForgetOldestKind() {
  const std::shared_ptr<KnownKind> oldest = by_use_.front();
  by_use_.pop_front();
  kinds_.erase(oldest->kind.number);
  if (oldest->is_newest) newest_.erase(oldest->kind.name());
  oldest->is_newest = false;
}

std::shared_ptr<KnownKind> KeptBlocks::Find(KindNumber number) const {
  absl::MutexLock hold(&mutex_);
  const auto it = kinds_.find(number);
  return it == kinds_.end() ? nullptr : *it->second;
}

std::shared_ptr<KnownKind> KeptBlocks::Use(KindNumber number) {
  absl::MutexLock hold(&mutex_);
  const auto it = kinds_.find(number);
  if (it == kinds_.end()) return nullptr;
  by_use_.splice(by_use_.end(), by_use_, it->second);
  return *it->second;
}

std::vector<std::shared_ptr<KnownKind>> KeptBlocks::kinds() const {
  std::vector<std::shared_ptr<KnownKind>> kinds;
  {
    absl::MutexLock hold(&mutex_);
    kinds.assign(by_use_.begin(), by_use_.end());
  }
  std::ranges::sort(kinds, {}, [](const auto& k) { return k->kind.number; });
  return kinds;
}

std::vector<bool> KeptBlocks::Have(const KnownKind& kind,
                                   std::span<const BlockName> names) const {
  CHECK(names.size() <= kMostNames);
  std::vector<bool> have(names.size());
  absl::MutexLock hold(&mutex_);
  if (!kind.is_newest) return have;
  for (size_t i = 0; i < names.size(); ++i) have[i] = index_.Has(names[i]);
  return have;
}

bool KeptBlocks::Has(const BlockName& name) const {
  absl::MutexLock hold(&mutex_);
  return index_.Has(name);
}

KeptBlocks::Begun KeptBlocks::BeginStore(const KnownKind& kind,
                                         const BlockName& name, uint64_t bytes,
                                         std::vector<BlockName>& evicted) {
  absl::MutexLock hold(&mutex_);
  if (!kind.is_newest || index_.Knows(name) || bytes > index_.max_bytes()) {
    return Begun::kNo;
  }
  for (size_t i = 0; i < kMostNames && !index_.HasRoom(bytes); ++i) {
    if (!index_.EvictOldest(evicted)) return Begun::kNo;
  }
  if (!index_.HasRoom(bytes)) return Begun::kAgain;
  index_.BeginStore(name, bytes);
  return Begun::kYes;
}

bool KeptBlocks::EndStore(const BlockName& name, bool is_written) {
  absl::MutexLock hold(&mutex_);
  return index_.EndStore(name, is_written);
}

bool KeptBlocks::HasRoom(uint64_t bytes) const {
  absl::MutexLock hold(&mutex_);
  return index_.HasRoom(bytes);
}

void KeptBlocks::Freed(uint64_t bytes) {
  absl::MutexLock hold(&mutex_);
  index_.Freed(bytes);
}

bool KeptBlocks::SweepSome() {
  absl::MutexLock hold(&mutex_);
  return index_.SweepSome();
}

void KeptBlocks::Touch(std::span<const BlockName> names) {
  CHECK(names.size() <= kMostNames);
  absl::MutexLock hold(&mutex_);
  for (const BlockName& name : names) index_.Touch(name);
}

void KeptBlocks::Forget(const BlockName& name) {
  absl::MutexLock hold(&mutex_);
  index_.Forget(name);
}

bool KeptBlocks::Restore(const BlockName& name, uint64_t bytes) {
  absl::MutexLock hold(&mutex_);
  if (renewed_.contains(name.kind) || index_.Knows(name) ||
      !index_.HasRoom(bytes)) {
    return false;
  }
  index_.BeginStore(name, bytes);
  return index_.EndStore(name, true);
}

void KeptBlocks::EndStock() {
  absl::MutexLock hold(&mutex_);
  takes_stock_ = false;
  renewed_.clear();
}

KeptBlocks::Totals KeptBlocks::totals() const {
  absl::MutexLock hold(&mutex_);
  return {.max_bytes = index_.max_bytes(),
          .max_blocks = index_.max_blocks(),
          .bytes = index_.used_bytes(),
          .blocks = index_.count(),
          .index_bytes = index_.bytes()};
}

}  // namespace pando
