#ifndef PANDO_CORE_EVICTION_GHOST_RING_H_
#define PANDO_CORE_EVICTION_GHOST_RING_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/hash/hash.h"
#include "absl/time/time.h"
#include "core/nodes/steady_index.h"

namespace pando {

// Remembers when and why each of the last 65,536 things was evicted. A thing is
// named by a key of two numbers. Things whose keys are equal by chance are
// mistaken for one.
//
// Not thread-safe. Each call is O(1), without an occasional long one in which a
// table grows. The memory is bounded.
template <typename Reason>
class GhostRing {
 public:
  struct Ghost {
    Reason reason;
    absl::Time evicted_at;
  };
  using Key = std::pair<uint64_t, uint64_t>;

  static constexpr uint32_t kMaxGhosts = 65'536;

  GhostRing() { records_.reserve(kMaxGhosts); }
  GhostRing(const GhostRing&) = delete;
  GhostRing& operator=(const GhostRing&) = delete;

  // When the ring is full, the oldest ghost is forgotten.
  void Add(const Key& key, Reason reason, absl::Time now) {
    const Record record{key, {reason, now}};
    const uint64_t hash = absl::HashOf(key);
    if (const uint32_t known = FindNewest(key); known != SteadyIndex::kNone) {
      newest_.Remove(hash, known);
    }
    if (records_.size() < kMaxGhosts) {
      records_.push_back(record);
      newest_.Add(hash, static_cast<uint32_t>(records_.size() - 1));
      return;
    }
    const Key& oldest = records_[next_].key;
    if (FindNewest(oldest) == next_) {
      newest_.Remove(absl::HashOf(oldest), next_);
    }
    records_[next_] = record;
    newest_.Add(hash, next_);
    next_ = (next_ + 1) % kMaxGhosts;
  }

  // The ghost with this key that was added last.
  std::optional<Ghost> Find(const Key& key) const {
    const uint32_t found = FindNewest(key);
    if (found == SteadyIndex::kNone) return std::nullopt;
    return records_[found].ghost;
  }

 private:
  struct Record {
    Key key;
    Ghost ghost;
  };

  // The index of the newest record with this key, or SteadyIndex::kNone.
  uint32_t FindNewest(const Key& key) const {
    return newest_.Find(absl::HashOf(key), [&](uint32_t index) {
      return records_[index].key == key;
    });
  }

  std::vector<Record> records_;  // a ring
  uint32_t next_ = 0;            // the oldest record, once the ring is full
  SteadyIndex newest_;           // indexes of records: the newest of each key
};

}  // namespace pando

#endif  // PANDO_CORE_EVICTION_GHOST_RING_H_
