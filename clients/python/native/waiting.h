#ifndef PANDO_CLIENTS_PYTHON_NATIVE_WAITING_H_
#define PANDO_CLIENTS_PYTHON_NATIVE_WAITING_H_

#include <Python.h>

#include <chrono>

#include "clients/lane/lane.h"

namespace pando::python {

using Seconds = std::chrono::duration<double>;

// Takes the GIL again after PyEval_SaveThread. Never returns if the interpreter
// is ending.
void TakeGil(PyThreadState* thread);

// Waits at most `timeout` seconds for the outcome of a call, without the GIL.
// Returns whether there is one. Throws nanobind::python_error if the handler of
// a signal raises.
bool AwaitOutcome(lane::Call& call, double timeout);

}  // namespace pando::python

#endif  // PANDO_CLIENTS_PYTHON_NATIVE_WAITING_H_
