#ifndef PANDO_TIERS_SHARED_KNOWN_BLOCKS_H_
#define PANDO_TIERS_SHARED_KNOWN_BLOCKS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace pando {

// The blocks that this process has stored or touched in the present period, by
// their names, so that it need not ask the store for them again. All blocks of
// a period count as used at its beginning. So the front of a prompt, which is
// touched only once, never looks older than blocks that are stored behind it
// later. Owned by RemoteBlocks or SharedBlocks; thread-safe. All methods but
// Forget, generation and PresentPeriod wait for a mutex.
template <typename Name>
class KnownBlocks {
 public:
  static constexpr absl::Duration kPeriod = absl::Minutes(10);
  // When it knows more blocks, BeginPeriod forgets all.
  static constexpr size_t kMost = size_t{256} * 1024;

  // Returns when the present period began, by the system's clock.
  static absl::Time PresentPeriod() {
    return absl::UnixEpoch() +
           absl::Floor(absl::Now() - absl::UnixEpoch(), kPeriod);
  }
  // Returns whether the period that began last is over.
  bool IsPeriodOver() const { return period() != PresentPeriod(); }
  // Begins the present period, if it has not begun yet, and forgets the blocks
  // of the one before. Also forgets all blocks when it knows too many.
  void BeginPeriod() {
    Names gone;
    absl::MutexLock hold(&mutex_);
    const absl::Time present = PresentPeriod();
    if (period_ != present || names_.size() > kMost) gone.swap(names_);
    period_ = present;
  }
  // When the last period began, by the system's clock.
  absl::Time period() const {
    absl::MutexLock hold(&mutex_);
    return period_;
  }

  // Returns how many blocks at the front of `run` are known.
  size_t CountKnown(std::span<const Name> run) const {
    absl::MutexLock hold(&mutex_);
    size_t known = 0;
    while (known < run.size() && Has(run[known])) ++known;
    return known;
  }
  // Returns the positions, from `begin` on, of the blocks that are not known.
  std::vector<uint32_t> UnknownOf(std::span<const Name> run,
                                  size_t begin = 0) const {
    std::vector<uint32_t> unknown;
    absl::MutexLock hold(&mutex_);
    for (size_t i = begin; i < run.size(); ++i) {
      if (!Has(run[i])) unknown.push_back(static_cast<uint32_t>(i));
    }
    return unknown;
  }
  // Adds blocks, unless Forget was called since generation() returned
  // `generation`.
  void Add(std::span<const Name> names, uint64_t generation) {
    Names gone;
    absl::MutexLock hold(&mutex_);
    if (generation != generation_) return;
    if (generation_of_names_ != generation) gone.swap(names_);
    generation_of_names_ = generation;
    names_.insert(names.begin(), names.end());
  }
  // Removes blocks that the store does not have, or may not have.
  void Remove(std::span<const Name> names) {
    absl::MutexLock hold(&mutex_);
    for (const Name& name : names) names_.erase(name);
  }

  // Forgets all blocks. Their memory is given back later.
  void Forget() { ++generation_; }
  // Counts the calls of Forget.
  uint64_t generation() const { return generation_; }

 private:
  using Names = absl::flat_hash_set<Name>;

  bool Has(const Name& name) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return generation_of_names_ == generation_ && names_.contains(name);
  }

  std::atomic<uint64_t> generation_ = 0;
  mutable absl::Mutex mutex_;
  Names names_ ABSL_GUARDED_BY(mutex_);
  uint64_t generation_of_names_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time period_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

}  // namespace pando

#endif  // PANDO_TIERS_SHARED_KNOWN_BLOCKS_H_
