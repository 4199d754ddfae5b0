#ifndef PANDO_SERVICE_CALLS_WAITING_CALL_H_
#define PANDO_SERVICE_CALLS_WAITING_CALL_H_

#include "absl/status/status.h"
#include "base/ids.h"
#include "os/resumable.h"
#include "service/security/access_control.h"

namespace pando {

class PrefixCache;

// A call as its handler sees it, whichever transport it came by. A handler lets
// it wait by returning none, and keeps the pointer to resume it later. Used in
// the turn (see Turn).
class WaitingCall : public Resumable {
 public:
  // Called by a handler before it returns none only to let others have the
  // turn. Returns whether the transport runs it again by itself.
  virtual bool OnStep() { return false; }
  // Whether the caller is gone. The handler was then run again for that reason,
  // and must answer.
  virtual bool is_cancelled() const = 0;
  // Whether the caller may see the contents of all namespaces.
  virtual bool spans_namespaces() const = 0;
  virtual Caller caller() const = 0;
  // To be called before the handler lets the call wait for `session`: until it
  // is answered, its request counts in the session's account of bytes.
  // SESSION_LIMIT: there is no room for it, so it must not wait.
  virtual absl::Status Keep(PrefixCache& cache, SessionId session) = 0;

 protected:
  ~WaitingCall() = default;
};

// Whether the handlers of a method may let its calls wait.
enum class Waiting { kNever, kAllowed };

}  // namespace pando

#endif  // PANDO_SERVICE_CALLS_WAITING_CALL_H_
