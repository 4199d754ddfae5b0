#ifndef PANDO_CLIENTS_PYTHON_NATIVE_PENDING_CALL_H_
#define PANDO_CLIENTS_PYTHON_NATIVE_PENDING_CALL_H_

#include <nanobind/nanobind.h>

#include <memory>

#include "clients/lane/lane.h"
#include "clients/python/native/codec.h"

namespace pando::python {

// A call on a lane, and the codec that reads its answer. Any thread may use it
// while it holds the GIL.
class PendingCall {
 public:
  PendingCall(lane::Call call, std::shared_ptr<Codec> response);

  lane::Call& call() { return call_; }

  // Waits at most `timeout` seconds for an outcome. Returns whether there is
  // one.
  bool IsReady(double timeout);

  // Waits for the answer and returns the response. For a call that failed, it
  // returns a google.rpc.Status as bytes. It returns None if there is no answer
  // or the answer is too large, so that the call must be made over gRPC. Raises
  // TimeoutError after `timeout` seconds. May be called again.
  nanobind::object Wait(double timeout);

  // Returns whether there is an outcome.
  bool IsDone() const { return call_.Poll().has_value(); }
  // Makes the answer end Lane::AwaitAnswers from now on. Returns false if the
  // call has an outcome already.
  bool WakeLane() { return call_.WakeLane(); }

  // Keeps the error that has ended a wait for the answer, or the reading of it.
  void Fail(const nanobind::python_error& error);
  // Returns the kept error, or None, and keeps it no longer: Python's garbage
  // collector does not see a reference that is kept here.
  nanobind::object TakeError();

 private:
  nanobind::object ReadAnswer() const;

  lane::Call call_;
  const std::shared_ptr<Codec> response_;
  nanobind::object error_ = nanobind::none();
};

}  // namespace pando::python

#endif  // PANDO_CLIENTS_PYTHON_NATIVE_PENDING_CALL_H_
