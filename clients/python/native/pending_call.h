#ifndef PANDO_CLIENTS_PYTHON_NATIVE_PENDING_CALL_H_
#define PANDO_CLIENTS_PYTHON_NATIVE_PENDING_CALL_H_

#include <nanobind/nanobind.h>

#include <memory>

#include "clients/lane/lane.h"
#include "clients/python/native/codec.h"

namespace pando::python {

// A call that was made on a lane, with what is needed to read its answer. Used
// with the GIL held, by any thread.
class PendingCall {
 public:
  PendingCall(lane::Call call, std::shared_ptr<Codec> response);

  lane::Call& call() { return call_; }

  // Waits `timeout` seconds for an outcome; returns whether there is one.
  bool IsReady(double timeout);

  // Returns the response; or, of a call that failed, a google.rpc.Status as
  // bytes; or None when there is no answer or it is too large, so that the call
  // must be made over gRPC. Raises TimeoutError after `timeout` seconds. May be
  // called again.
  nanobind::object Wait(double timeout);

  // Whether there is an outcome.
  bool IsDone() const { return call_.Poll().has_value(); }
  // Makes the answer end AwaitAnswers from now on. Returns false if it is there
  // already.
  bool WakeLane() { return call_.WakeLane(); }

  // Keeps what has ended a wait for it, or the reading of its answer.
  void Fail(const nanobind::python_error& error);
  // Gives that away, or None: the collector does not see who keeps it here.
  nanobind::object TakeError();

 private:
  nanobind::object ReadAnswer() const;

  lane::Call call_;
  const std::shared_ptr<Codec> response_;
  nanobind::object error_ = nanobind::none();
};

}  // namespace pando::python

#endif  // PANDO_CLIENTS_PYTHON_NATIVE_PENDING_CALL_H_
