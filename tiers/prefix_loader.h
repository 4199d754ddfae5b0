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

// How long the lookup of a prompt may take for a call that does not wait.
inline constexpr absl::Duration kLookupTime = absl::Seconds(1);

// Says what a call wants with the tokens that are kept outside the cache.
enum class LoadAction {
  kTell,   // only say how many there are
  kAwait,  // load them if a call still waits when the load begins
  kStart,  // load them in any case
};

// Where copies of pages are kept outside the cache, the fastest first.
enum class KeptIn { kNowhere, kHost, kDisk, kShared };

// Says how much of a prompt is cached, or kept outside the cache.
struct Kept {
  // How many tokens from the start of the prompt are cached or kept. It is 0 if
  // nothing after the cached tokens is kept.
  uint32_t tokens = 0;
  // The slowest of the places from which those that are not cached come.
  KeptIn slowest = KeptIn::kNowhere;
};

// Why tokens that are kept would not be loaded for a call that waits.
enum class LoadObstacle { kNone, kTooFew, kNoRoom, kNoMover };

// The results of the lookups of a call, for its handler when it runs again.
struct LookedUp {
  absl::Time deadline;  // until when the call may wait
  // One for each prompt. It is Kept() if nothing is kept, or if the lookup was
  // not answered in time.
  std::vector<Kept> kept = {};

  Kept kept_of_first() const { return kept.empty() ? Kept() : kept.front(); }
};

// Loads prefixes that are not cached any more back into the cache, from
// wherever copies are kept. Methods that are not marked as thread-safe must be
// called in the turn.
class PrefixLoader {
 public:
  virtual ~PrefixLoader() = default;

  // Begins a lookup: finds out how much of a prompt can be loaded beyond what
  // is cached. If something can and `action` asks for it, the load begins too.
  // Then the page after the match is pending, as if a worker computed it.
  //
  // Returns whether a lookup has begun. If so, the handler of `call` runs again
  // when the lookup is done, or at `deadline` (of MonotonicNow). A lookup takes
  // microseconds, unless a shared store is slow. The memory of the lookup and
  // the load counts in the account of `session`. Fails with SESSION_LIMIT when
  // the account has no room.
  virtual absl::StatusOr<bool> Begin(Resumable& call, SessionId session,
                                     const PrefixQuery& query,
                                     LoadAction action,
                                     absl::Time deadline) = 0;
  // Does the same for many prompts, but loads nothing. It looks up only as many
  // prompts as can be hashed in milliseconds, and reports nothing kept for the
  // others. Returns whether a lookup has begun.
  virtual bool BeginTelling(Resumable& call,
                            std::span<const PrefixQuery> queries,
                            absl::Time deadline) = 0;
  // Ends the wait of `call` and returns the results of its lookups, or none if
  // it had none. Must be called when the handler of `call` runs again, whatever
  // the reason.
  virtual std::optional<LookedUp> End(const Resumable& call) = 0;

  // Returns how much of a prompt is cached, or kept on this machine. Takes as
  // long as hashing the prompt does. Thread-safe.
  virtual Kept FindKept(const PrefixQuery& query) = 0;
  // Returns why a waiting call would not load the tokens from `matched_tokens`,
  // up to which the prompt is cached, to `kept_tokens`, which FindKept
  // returned. Thread-safe.
  virtual LoadObstacle FindObstacle(uint32_t matched_tokens,
                                    uint32_t kept_tokens) = 0;

  // Ends all loads and stores that have begun, and begins none until all
  // returned objects are destroyed. A flush pauses the loader from its
  // beginning until it has called Forget or ForgetAll.
  virtual std::shared_ptr<const void> Pause() = 0;
  // Forgets all copies of a namespace, or of all namespaces: nothing that is
  // kept now is loaded again.
  virtual void Forget(const NamespaceKey& ns) = 0;
  virtual void ForgetAll() = 0;
};

}  // namespace pando

#endif  // PANDO_TIERS_PREFIX_LOADER_H_
