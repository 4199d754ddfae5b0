#ifndef PANDO_TIERS_PREFIX_LOADER_H_
#define PANDO_TIERS_PREFIX_LOADER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/ids.h"
#include "core/requests/namespace_key.h"
#include "core/requests/requests.h"
#include "os/resumable.h"

namespace pando {

// How long a call that does not wait may be looked up.
inline constexpr absl::Duration kLookupTime = absl::Seconds(1);

// The wish of a call for the tokens that are kept outside the cache.
enum class LoadAction {
  kTell,   // to know how many there are
  kAwait,  // to load them as long as a call waits when the load begins
  kStart,  // to load them in any case
};

// Where copies of pages are kept outside the cache, the fastest first.
enum class KeptIn { kNowhere, kHost, kDisk, kShared };

// The part of a prompt that is kept.
struct Kept {
  // So many tokens from its start are cached or kept; none if nothing is kept.
  uint32_t tokens = 0;
  // The slowest of the places that are needed for those that are not cached.
  KeptIn slowest = KeptIn::kNowhere;
};

// Why tokens that are kept would not be loaded for a call that waits.
enum class LoadObstacle { kNone, kTooFew, kNoRoom, kNoMover };

// The findings of a look-up, for a handler that runs again.
struct LookedUp {
  absl::Time deadline;  // until when the call may wait
  // One for each prompt that was looked up; empty if it could not be found out.
  std::vector<Kept> kept = {};

  Kept kept_of_first() const { return kept.empty() ? Kept() : kept.front(); }
};

// Brings prefixes that are not cached any more back into the cache, from
// wherever they are kept. What is not thread-safe is used in the turn.
class PrefixLoader {
 public:
  virtual ~PrefixLoader() = default;

  // Finds out whether more of a prompt than is cached can be loaded. If so, and
  // if `action` says so, it begins to: then the page after the match is
  // pending, as if a worker computed it. Returns whether it looks at all; if it
  // does, it runs the handler of `call` again when it knows, in microseconds
  // unless a shared store is slow, or when the deadline is over. What is kept
  // for the look-up and the load counts for `session`: SESSION_LIMIT when there
  // is no room in its account.
  virtual absl::StatusOr<bool> Begin(Resumable& call, SessionId session,
                                     const PrefixQuery& query,
                                     LoadAction action,
                                     absl::Time deadline) = 0;
  // The same for many prompts, of which nothing is loaded. As many as hash in
  // milliseconds are looked up; of the others nothing is found out.
  virtual bool BeginTelling(Resumable& call,
                            std::span<const PrefixQuery> queries,
                            absl::Time deadline) = 0;
  // To be called when the handler of `call` runs again, whatever the reason.
  // None: nothing was looked up.
  virtual std::optional<LookedUp> End(const Resumable& call) = 0;

  // Thread-safe, and takes as long as hashing the prompt does.
  virtual Kept FindKept(const PrefixQuery& query) = 0;
  // The first `matched_tokens` of the tokens that FindKept found are cached.
  // Thread-safe.
  virtual LoadObstacle FindObstacle(uint32_t matched_tokens,
                                    uint32_t kept_tokens) = 0;

  // Ends all that was begun; nothing is loaded or kept until what this returns
  // is destroyed. For a flush, from its begin until it has told Forget.
  virtual std::shared_ptr<const void> Pause() = 0;
  // Nothing that is kept of this namespace, or of any, now is loaded again.
  virtual void Forget(const NamespaceKey& ns) = 0;
  virtual void ForgetAll() = 0;
};

}  // namespace pando

#endif  // PANDO_TIERS_PREFIX_LOADER_H_
