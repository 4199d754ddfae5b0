#ifndef PANDO_TIERS_BLOCKS_SHARED_ASKS_H_
#define PANDO_TIERS_BLOCKS_SHARED_ASKS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/prefix_cache.h"
#include "tiers/blocks/block_loads.h"
#include "tiers/blocks/block_tier_figures.h"
#include "tiers/blocks/kept_blocks.h"
#include "tiers/blocks/shared_blocks.h"
#include "tiers/blocks/shared_question.h"
#include "tiers/blocks/shared_source.h"
#include "tiers/shared/circuit_breaker.h"
#include "tiers/shared/deadline_threads.h"

namespace pando {

// Asks a shared store, on a thread of its own, which blocks it has, and begins
// to load those that a call needs. Calls do not wait: what is asked for is
// pending, and the engine asks again. Owned by SharedBlockTier; thread-safe.
class SharedAsks {
 public:
  // The pointers must outlive this object. `timeout` limits one call of the
  // store.
  struct Parts {
    PrefixCache* cache;
    SharedBlocks* shared;
    SharedSource* source;
    BlockLoads* loads;
    BlockTierCounts* counts;
    absl::Duration timeout;
  };

  explicit SharedAsks(const Parts& parts);
  ~SharedAsks();

  // Returns false while blocks of a kind must not be asked for and loaded.
  bool MayAsk(const KnownKind& kind) const;
  // Returns whether questions keep failing.
  bool is_refused() const { return breaker_.is_open(); }
  // Says what is known of a block before the store is asked.
  enum class Known : char {
    kLacks,      // the store lacks the block, or does not give it now
    kIsLoading,  // the block is being loaded
    kMayHave,
  };
  std::vector<Known> Look(std::span<const BlockName> names) const;

  // Returns whether a question about `keys` waits for its answer. REQUIRES:
  // `keys` is not empty.
  bool IsWaiting(const KnownKind& kind, std::string_view keys) const;
  // Begins to ask. The memory of the question counts in the account of
  // `asked_by`. Returns whether there will be an answer; there is none if the
  // queue or the account has no room. REQUIRES: `asked` is not empty.
  bool Begin(SharedQuestion question);
  // Asks and loads no more.
  void BeginDrain();

 private:
  void Run();
  // Asks for the next keys of a question. Returns whether it has its answer.
  bool Step(SharedQuestion& question);
  // Asks for some keys, and counts as a use of them. Returns none if there is
  // no answer in time.
  std::optional<std::vector<bool>> Ask(const SharedQuestion& question,
                                       std::span<const uint32_t> positions);
  // Begins to load what the shape needs.
  void Answer(SharedQuestion& question);
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return is_stopped_ || !queue_.empty();
  }

  const Parts parts_;
  CircuitBreaker breaker_;
  DeadlineThreads askers_;
  mutable absl::Mutex mutex_;
  QuestionQueue queue_ ABSL_GUARDED_BY(mutex_);
  bool is_draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace pando

#endif  // PANDO_TIERS_BLOCKS_SHARED_ASKS_H_
