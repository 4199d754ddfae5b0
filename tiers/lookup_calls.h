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

// The calls whose prompts are being looked up: runs the handler of each again
// when all its lookups have been answered, or its time is up. Owned by
// TierLoads. Has and Answer are thread-safe; all else is used in the turn.
class LookupCalls {
 public:
  // `actions` outlives this, and none has run yet.
  explicit LookupCalls(TurnActions* actions);

  // `call` waits for so many lookups, at least one. Returns the number of the
  // first; those of the others follow.
  uint64_t Begin(Resumable& call, size_t lookups, absl::Time deadline);
  // As PrefixLoader::End.
  std::optional<LookedUp> End(const Resumable& call);
  // Runs the handlers of all of them again.
  void ResumeAll();

  // Whether a call still waits for this lookup.
  bool Has(uint64_t lookup);
  // To be called once for each lookup.
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

  void TakeAnswers();
  void ResumeWithDeadlineUntil(absl::Time deadline);

  Wakeup* const answered_wakeup_;
  // Its period is set while a call waits.
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
