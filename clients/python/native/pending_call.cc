#include "clients/python/native/pending_call.h"

#include <cstddef>
#include <span>
#include <utility>

#include "clients/python/native/waiting.h"

namespace pando::python {

namespace nb = nanobind;

PendingCall::PendingCall(lane::Call call, std::shared_ptr<Codec> response)
    : call_(std::move(call)), response_(std::move(response)) {}

bool PendingCall::IsReady(double timeout) {
  return AwaitOutcome(call_, timeout);
}

nb::object PendingCall::Wait(double timeout) {
  if (!IsReady(timeout)) {
    PyErr_SetNone(PyExc_TimeoutError);
    throw nb::python_error();
  }
  if (call_.Poll() != lane::Call::Outcome::kAnswered) return nb::none();
  try {
    nb::object answer = ReadAnswer();
    if (call_.HasIntactAnswer()) return answer;
  } catch (const nb::python_error&) {
    if (call_.HasIntactAnswer()) throw;
  }
  return nb::none();
}

void PendingCall::Fail(const nb::python_error& error) {
  error_ = nb::borrow(error.value());
}

nb::object PendingCall::TakeError() {
  return std::exchange(error_, nb::none());
}

nb::object PendingCall::ReadAnswer() const {
  const std::span<const std::byte> answer = call_.answer();
  if (call_.code() == 0) return nb::steal(response_->Decode(answer));
  return nb::bytes(answer.data(), answer.size());
}

}  // namespace pando::python
