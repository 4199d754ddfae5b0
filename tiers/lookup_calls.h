#ifndef PANDO_TIERS_LOOKUP_CALLS_H_
#define PANDO_TIERS_LOOKUP_CALLS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "os/resumable.h"
#include "os/turn_actions.h"
#include "tiers/prefix_loader.h"

namespace pando {

// The calls that wait for lookups of their prompts. Runs the handler of a call
// again when all its lookups are answered, or when its deadline has passed.
// Owned by TierLoads. Has and Answer are thread-safe; the other methods must be
// called in the turn.
class LookupCalls {
 public:
  // `actions` must outlive this object, and none of them may have run yet.
  explicit LookupCalls(TurnActions* actions);

  // Makes `call` wait for `lookups` lookups (at least one), at most until
  // `deadline` (of MonotonicNow). Returns the number of the first lookup; the
  // others have the numbers that follow it.
  uint64_t Begin(Resumable& call, size_t lookups, absl::Time deadline);
  // See PrefixLoader::End.
  std::optional<LookedUp> End(const Resumable& call);
  // Runs the handlers of all waiting calls again.
  void ResumeAll();

  // Returns whether a call still waits for this lookup.
  bool Has(uint64_t lookup);
  // Answers a lookup; does nothing if no call waits for it any more. Must be
  // called once for each lookup.
  void Answer(uint64_t lookup, Kept kept);

 private:
  struct Waiting {
    Resumable* call;
    uint64_t first_lookup;
    size_t unanswered;
    LookedUp looked_up;
  };
  struct Answered {
    uint64_t lookup;
    Kept kept;
  };

  // Hands the answers to their calls, and runs the handlers of those that have
  // all. Runs in the turn.
  void TakeAnswers();
  void ResumeWithDeadlineUntil(absl::Time deadline);

  Wakeup* const answered_wakeup_;
  // It has a period only while a call waits.
  Timer* const deadline_timer_;
  uint64_t last_lookup_ = 0;
  absl::flat_hash_map<const Resumable*, Waiting> by_call_;

  absl::Mutex mutex_;
  absl::flat_hash_map<uint64_t, const Resumable*> by_lookup_
      ABSL_GUARDED_BY(mutex_);
  std::vector<Answered> answered_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pando

#endif  // PANDO_TIERS_LOOKUP_CALLS_H_
