#ifndef PANDO_SERVICE_CALLS_WAITING_CALL_H_
#define PANDO_SERVICE_CALLS_WAITING_CALL_H_

#include "service/security/access_control.h"

namespace pando {

// A call as its handler sees it, whichever transport it came by. The handler
// may let it wait. Used in the turn (see CallPolicy).
class WaitingCall {
 public:
  // Runs the handler again, while the call waits.
  virtual void Resume() = 0;
  // The caller is gone: the handler was run again for that, and must answer.
  virtual bool is_cancelled() const = 0;
  // The caller may see what is in all namespaces.
  virtual bool spans_namespaces() const = 0;
  virtual Caller caller() const = 0;

 protected:
  ~WaitingCall() = default;
};

// Whether the handlers of a method may let its calls wait.
enum class Waiting { kNever, kAllowed };

}  // namespace pando

#endif  // PANDO_SERVICE_CALLS_WAITING_CALL_H_
