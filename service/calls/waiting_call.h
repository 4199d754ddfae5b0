#ifndef PANDO_SERVICE_CALLS_WAITING_CALL_H_
#define PANDO_SERVICE_CALLS_WAITING_CALL_H_

#include "absl/status/status.h"
#include "base/ids.h"
#include "os/resumable.h"
#include "service/security/access_control.h"

namespace pando {

class PrefixCache;

// A call as its handler sees it, on any transport. A handler lets the call wait
// by returning none, and keeps the pointer to resume the call later. Used in
// the turn (see Turn).
class WaitingCall : public Resumable {
 public:
  // A handler calls this before it returns none between two steps, only to let
  // others have the turn. Returns true if the transport runs the handler again
  // by itself; if false, the handler's side must call Resume.
  virtual bool OnStep() { return false; }
  // Returns whether the caller is gone. If so, the handler runs for that
  // reason, and must answer now.
  virtual bool is_cancelled() const = 0;
  // Returns whether the caller may see the contents of all namespaces.
  virtual bool spans_namespaces() const = 0;
  virtual Caller caller() const = 0;
  // The handler must call this before it lets the call wait on behalf of
  // `session`. Until the call is answered, its request counts in the session's
  // account of bytes. Returns SESSION_LIMIT if the account has no room; then
  // the call must not wait.
  virtual absl::Status Keep(PrefixCache& cache, SessionId session) = 0;

 protected:
  ~WaitingCall() = default;
};

}  // namespace pando

#endif  // PANDO_SERVICE_CALLS_WAITING_CALL_H_
