#ifndef PANDO_TIERS_BLOCKS_SHARED_ASKS_H_
#define PANDO_TIERS_BLOCKS_SHARED_ASKS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/ids.h"
#include "core/kept_bytes.h"
#include "core/prefix_cache.h"
#include "core/requests/block_requests.h"
#include "tiers/blocks/block_loads.h"
#include "tiers/blocks/block_tier_figures.h"
#include "tiers/blocks/kept_blocks.h"
#include "tiers/blocks/shared_blocks.h"
#include "tiers/blocks/shared_source.h"
#include "tiers/shared/circuit_breaker.h"
#include "tiers/shared/deadline_threads.h"

namespace pando {

// Asks a shared store, on a thread of its own, which blocks it has, and begins
// to load those that a call needs. Calls do not wait: what is asked for is
// pending, and the engine asks again. Owned by SharedBlockTier; thread-safe.
class SharedAsks {
 public:
  // The pointers must outlive this object. `timeout` limits one question.
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

  // Returns false while nothing is asked or loaded.
  bool MayAsk() const;
  // Returns whether questions keep failing.
  bool is_refused() const { return breaker_.is_open(); }
  // What is known of a block without asking the store.
  enum class Known : char {
    kLacks,      // it does not have the block, or is not to be asked
    kIsLoading,  // the block is being loaded
    kMayHave,
  };
  std::vector<Known> Look(std::span<const BlockName> names) const;

  // The keys of one kind that a call asks for, one row.
  struct Question {
    std::shared_ptr<KnownKind> kind;
    std::string keys;
    std::string before;
    BlockShape shape;
    uint32_t window;
    // The answer to each key so far. Blocks that are being loaded are pending.
    std::vector<BlockPlace> answers;
    // The positions of the keys that the store may have.
    std::vector<uint32_t> asked;
    SessionId asked_by;
    KeptBytes account;
  };
  // Returns whether a question about these positions of `keys` waits for its
  // answer. REQUIRES: `asked` is not empty.
  bool IsWaiting(const KnownKind& kind, std::string_view keys,
                 std::span<const uint32_t> asked) const;
  // Begins to ask. The memory of the question counts in the account of
  // `asked_by`. Returns whether there will be an answer; there is none if the
  // queue or the account has no room. REQUIRES: the same question does not
  // wait.
  bool Begin(Question question);
  // Asks and loads no more.
  void BeginDrain();

 private:
  // Tells questions apart: the first and the last key that are asked for, and
  // how many there are.
  using Id = std::pair<std::pair<BlockName, BlockName>, size_t>;
  struct Waiting {
    Id id;
    Question question;
  };

  // What is known of the keys of a question.
  struct Found {
    std::vector<bool> kept;  // in the store, by position
    std::vector<BlockName> absent;
    std::vector<BlockName> refused;  // in the store, and not loaded
  };

  static Id IdOf(const KnownKind& kind, std::string_view keys,
                 std::span<const uint32_t> asked);
  void Run();
  // Asks for the keys in parts, in the order in which the shape needs them,
  // until what is needed is decided, or the time is up. What was not asked then
  // counts as absent, so that calls do not go on waiting.
  Found Ask(const Question& question);
  // Asks for some keys, and counts as a use of them. Returns none if there is
  // no answer in time.
  std::optional<std::vector<bool>> AskSome(const Question& question,
                                           std::span<const uint32_t> some,
                                           absl::Time deadline);
  void Answer(Question question);
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return is_stopped_ || !queue_.empty();
  }

  const Parts parts_;
  CircuitBreaker breaker_;
  DeadlineThreads askers_;
  mutable absl::Mutex mutex_;
  std::deque<Waiting> queue_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_set<Id> asking_ ABSL_GUARDED_BY(mutex_);
  bool is_draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace pando

#endif  // PANDO_TIERS_BLOCKS_SHARED_ASKS_H_
