#ifndef PANDO_SERVICE_HANDLERS_PREFIX_LOADER_H_
#define PANDO_SERVICE_HANDLERS_PREFIX_LOADER_H_

#include <memory>
#include <optional>

#include "absl/time/time.h"
#include "core/namespace_key.h"
#include "core/requests.h"
#include "service/calls/waiting_call.h"

namespace pando {

// Brings prefixes that are not cached any more back into the cache, from
// wherever they are kept. Used in the turn.
class PrefixLoader {
 public:
  virtual ~PrefixLoader() = default;

  // Finds out whether more of a prompt than is cached can be loaded. If so, it
  // begins to: then the page after the match is pending, as if a worker
  // computed it. Returns whether it looks at all; if it does, it runs the
  // handler of `call` again when it knows, in some microseconds.
  virtual bool Begin(WaitingCall& call, const PrefixQuery& query,
                     absl::Time deadline) = 0;
  // To be called when the handler of `call` runs again, whatever the reason.
  // Returns the deadline given to Begin; none if nothing was looked up.
  virtual std::optional<absl::Time> End(const WaitingCall& call) = 0;

  // Ends all that was begun; nothing is loaded or kept until what this returns
  // is destroyed. For a flush, from its begin until it has told Forget.
  virtual std::shared_ptr<const void> Pause() = 0;
  // Nothing that is kept of this namespace, or of any, now is loaded again.
  virtual void Forget(const NamespaceKey& ns) = 0;
  virtual void ForgetAll() = 0;
};

}  // namespace pando

#endif  // PANDO_SERVICE_HANDLERS_PREFIX_LOADER_H_
