#ifndef PANDO_CLIENTS_PYTHON_NATIVE_WAITING_H_
#define PANDO_CLIENTS_PYTHON_NATIVE_WAITING_H_

#include <Python.h>

#include <chrono>

#include "clients/lane/lane.h"

namespace pando::python {

using Seconds = std::chrono::duration<double>;

// Takes the GIL again after PyEval_SaveThread.
void TakeGil(PyThreadState* thread);

// Waits `timeout` seconds for the outcome of a call, without the GIL; returns
// whether there is one. Throws nanobind::python_error when a signal's handler
// raises.
bool AwaitOutcome(lane::Call& call, double timeout);

}  // namespace pando::python

#endif  // PANDO_CLIENTS_PYTHON_NATIVE_WAITING_H_
